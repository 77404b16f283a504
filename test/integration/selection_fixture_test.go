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
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
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
	// digests are those of all Releases that the Application ever had, in order.
	digests []string
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
	if err := rollouts.admin.Create(t.Context(), made); err != nil {
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
	if err := rollouts.admin.Create(s.ctx, o); err != nil {
		s.Fatal(err)
	}
}

// configMap is one with a value.
func (s *selectionFixture) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: s.named(name), Data: map[string]string{"value": value}}
}

// selects creates the Application and records its Releases. The user who chose the selectors may do everything.
func (s *selectionFixture) selects(selectors ...shipper.ResourceSelector) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: s.named("web"), Spec: shipper.ApplicationSpec{
		RevisionHistoryLimit: ptr.To[int32](1), Template: shipper.ReleaseEnvironment{
			Resources:           &shipper.Resources{Select: selectors},
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: s.namespace}}},
			Strategy:            &shipper.RolloutStrategy{},
		}}}
	app.Annotations = map[string]string{shipper.AppSelectedByAnnotation: `{"username":"root","groups":["system:masters"]}`}
	watch, err := rollouts.admin.Watch(s.ctx, &shipper.ReleaseList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if rel, ok := e.Object.(*shipper.Release); ok && e.Type == apiwatch.Added {
				s.mu.Lock()
				s.digests = append(s.digests, rel.Spec.Environment.ResourcesDigest)
				s.mu.Unlock()
			}
		}
	}()
	s.create(app)
}

// recorded are the digests so far.
func (s *selectionFixture) recorded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.digests)
}

// newest is the newest Release; nil if there is none.
func (s *selectionFixture) newest() *shipper.Release {
	s.Helper()
	var list shipper.ReleaseList
	if err := rollouts.admin.List(s.ctx, &list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	var rels []*shipper.Release
	for i := range list.Items {
		rels = append(rels, &list.Items[i])
	}
	return stamp.NewestOf(rels)
}

func (s *selectionFixture) app() *shipper.Application {
	s.Helper()
	app := &shipper.Application{}
	if err := rollouts.admin.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, app); err != nil {
		s.Fatal(err)
	}
	return app
}

func (s *selectionFixture) soon(what string, look func() error) {
	s.Helper()
	env.Within(s, patience, what, func(context.Context) error { return look() })
}

// holds waits until the newest Release has content, whose digest it returns, of exactly these objects.
func (s *selectionFixture) holds(want ...string) (digest string) {
	s.Helper()
	slices.Sort(want)
	s.soon("the content", func() error {
		rel := s.newest()
		if rel == nil {
			return fmt.Errorf("there is no Release: %+v", s.app().Status.Conditions)
		}
		digest = rel.Spec.Environment.ResourcesDigest
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
