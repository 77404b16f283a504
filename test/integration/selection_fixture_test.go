// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/test/env"
)

// selectionFixture is one test in a namespace of its own, with one Application.
type selectionFixture struct {
	*testing.T
	ctx       context.Context
	namespace string

	mu sync.Mutex
	// pins are all that the Application ever had, in order.
	pins []string
}

// beginSelection makes a namespace in which Shipper has ClusterRoles. The test runs in parallel.
func beginSelection(t *testing.T, roles ...string) *selectionFixture {
	t.Helper()
	t.Parallel()
	return beginSelectionAlone(t, roles...)
}

// beginSelectionAlone is beginSelection for a test that holds the clock, by which the start of watches is bounded too.
func beginSelectionAlone(t *testing.T, roles ...string) *selectionFixture {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := selections.client.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	s := &selectionFixture{T: t, ctx: t.Context(), namespace: made.Name}
	for _, role := range roles {
		s.bind(role)
	}
	return s
}

// bind gives Shipper a ClusterRole in the namespace.
func (s *selectionFixture) bind(role string) {
	s.Helper()
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: s.named(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{
			Kind: "ServiceAccount", Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	})
}

func (s *selectionFixture) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *selectionFixture) create(o client.Object) {
	s.Helper()
	if err := selections.client.Create(s.ctx, o); err != nil {
		s.Fatal(err)
	}
}

// configMap is one with a value.
func (s *selectionFixture) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: s.named(name), Data: map[string]string{"value": value}}
}

// selects creates the Application and records its pins.
func (s *selectionFixture) selects(selectors ...shipper.ResourceSelector) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: s.named("web"), Spec: shipper.ApplicationSpec{Template: shipper.ReleaseEnvironment{
		Resources:           &shipper.Resources{Select: selectors},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
		Strategy:            &shipper.RolloutStrategy{},
	}}}
	watch, err := selections.client.Watch(s.ctx, &shipper.ApplicationList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if app, ok := e.Object.(*shipper.Application); ok {
				s.record(app)
			}
		}
	}()
	s.create(app)
	// As the rollout reconciler does, which does not run here.
	was := app.DeepCopy()
	app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationBlocked, Status: corev1.ConditionFalse}}
	if err := selections.client.Status().Patch(s.ctx, app, client.MergeFrom(was)); err != nil {
		s.Fatal(err)
	}
}

func (s *selectionFixture) record(app *shipper.Application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pins := app.Spec.Template.Pins
	if pins != nil && (len(s.pins) == 0 || s.pins[len(s.pins)-1] != pins.Resources) {
		s.pins = append(s.pins, pins.Resources)
	}
}

// recorded are the pins so far.
func (s *selectionFixture) recorded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pins)
}

func (s *selectionFixture) app() *shipper.Application {
	s.Helper()
	app := &shipper.Application{}
	if err := selections.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, app); err != nil {
		s.Fatal(err)
	}
	return app
}

func (s *selectionFixture) soon(what string, look func() error) {
	s.Helper()
	env.Within(s, patience, what, func(context.Context) error { return look() })
}

// holds waits until the content that is pinned, which it returns, has exactly these objects.
func (s *selectionFixture) holds(want ...string) (digest string) {
	s.Helper()
	slices.Sort(want)
	s.soon("the content", func() error {
		app := s.app()
		if app.Spec.Template.Pins == nil {
			return fmt.Errorf("there is no pin: %+v", app.Status.Conditions)
		}
		digest = app.Spec.Template.Pins.Resources
		list, err := selections.snapshots.Content(s.ctx, s.namespace, digest)
		if err != nil {
			return err
		}
		var got []string
		for i := range list {
			got = append(got, strings.ReplaceAll(objects.KeyOf(&list[i]).String(), s.namespace, "ns"))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	return digest
}

// reports waits until the condition ResourcesSelected has a reason, empty for True, and returns its message.
func (s *selectionFixture) reports(reason string) (message string) {
	s.Helper()
	s.soon("the condition", func() error {
		c := shipper.FindCondition(s.app().Status.Conditions, shipper.ApplicationResourcesSelected)
		if c == nil {
			return errors.New("there is none")
		}
		message = c.Message
		if c.Reason != reason || (c.Status == corev1.ConditionTrue) != (reason == "") {
			return fmt.Errorf("it is %+v", *c)
		}
		return nil
	})
	return message
}
