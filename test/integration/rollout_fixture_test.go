// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// rolloutFixture is one test: an Application called web in a namespace of its own, with clusters a and b in a region of its own.
type rolloutFixture struct {
	client.Client
	t         *testing.T
	namespace string
}

func newRolloutFixture(t *testing.T) *rolloutFixture {
	t.Helper()
	s := &rolloutFixture{Client: rollouts.admin, t: t}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rollout-"}}
	s.must(s.Create(t.Context(), ns))
	s.namespace = ns.Name
	return s
}

func (s *rolloutFixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// onTwoClusters has clusters a and b, and no Application yet.
func onTwoClusters(t *testing.T) *rolloutFixture {
	t.Helper()
	s := newRolloutFixture(t)
	s.cluster("a")
	s.cluster("b")
	return s
}

// running has web with strategy allIn, whose only Release is complete.
func running(t *testing.T) *rolloutFixture {
	t.Helper()
	s := onTwoClusters(t)
	s.edit(0, allIn)
	s.until(serving, s.shares)
	return s
}

// newRollout is running with a first Release that has not completed.
func newRollout(t *testing.T) *rolloutFixture {
	t.Helper()
	s := onTwoClusters(t)
	s.edit(0, vanguard)
	s.until(staging, s.shares)
	return s
}

// contending is running with a second Release, which waits at its first step.
func contending(t *testing.T) *rolloutFixture {
	t.Helper()
	s := running(t)
	s.edit(1, vanguard)
	s.until(serving+" | "+staging, s.shares)
	return s
}

// cluster adds a cluster to the region of the story; its name is the story's and the suffix.
func (s *rolloutFixture) cluster(suffix string) string {
	s.t.Helper()
	c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + suffix}}
	c.Spec.Region, c.Spec.APIMaster = s.namespace, "https://127.0.0.1:1"
	s.must(s.Create(s.t.Context(), c))
	s.t.Cleanup(func() { _ = s.Delete(context.Background(), c) })
	return c.Name
}

var allIn, vanguard = env.AllIn().Steps(), env.Vanguard().Steps()

// What shares sees of a Release.
const (
	serving  = "100%/100 100%/100 at full on, complete"
	staging  = "1%/0 1%/0 at staging, waiting for command"
	halfDone = "50%/50 50%/50 at 50/50, waiting for command"
	halfLeft = "50%/50 50%/50 at full on, complete"
	done     = "0%/0 0%/0 at full on, complete"
)

// template has four replicas in two clusters, and a number that makes it differ from others.
func (s *rolloutFixture) template(edit int64, steps []shipper.RolloutStrategyStep) shipper.ReleaseEnvironment {
	two := int32(2)
	return shipper.ReleaseEnvironment{
		Chart:  shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example"},
		Values: &shipper.ChartValues{"replicaCount": int64(4), "edit": edit},
		ClusterRequirements: shipper.ClusterRequirements{
			Regions: []shipper.RegionRequirement{{Name: s.namespace, Replicas: &two}},
		},
		Strategy: &shipper.RolloutStrategy{Steps: steps},
	}
}

// apply creates the Application web, or changes it.
func (s *rolloutFixture) apply(change func(*shipper.Application)) {
	s.t.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
		s.must(client.IgnoreNotFound(err))
		change(app)
		s.must(s.Create(s.t.Context(), app))
		return
	}
	for {
		change(app)
		if err := s.Update(s.t.Context(), app); err == nil {
			return
		}
		s.must(s.Get(s.t.Context(), client.ObjectKeyFromObject(app), app))
	}
}

func (s *rolloutFixture) edit(n int64, steps []shipper.RolloutStrategyStep) {
	s.t.Helper()
	s.apply(func(app *shipper.Application) { app.Spec.Template = s.template(n, steps) })
}

func (s *rolloutFixture) app() *shipper.Application {
	s.t.Helper()
	app := &shipper.Application{}
	s.must(s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, app))
	return app
}

// until waits for want to be what look sees.
func (s *rolloutFixture) until(want string, look func() string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	err := env.Until(ctx, "(-want +got)", func(context.Context) error {
		if got := look(); got != want {
			return errors.New(cmp.Diff(want, got))
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.everything())
	}
}

// untilEvent waits for an event about an object of that name, with a reason and a note of which part is part.
func (s *rolloutFixture) untilEvent(name, reason, part string) {
	s.t.Helper()
	s.until("told", func() string {
		var events corev1.EventList
		s.must(s.List(s.t.Context(), &events, client.InNamespace(s.namespace)))
		seen := "of " + name + ", no event " + reason
		for _, e := range events.Items {
			if e.InvolvedObject.Name != name || e.Reason != reason {
				continue
			}
			if strings.Contains(e.Message, part) {
				return "told"
			}
			seen += "\n" + e.Message
		}
		return seen
	})
}

// releases are the names of the Application's Releases in order, from its history, each with the step it is at.
func (s *rolloutFixture) releases() []string { return s.app().Status.History }

func (s *rolloutFixture) release(i int) *shipper.Release {
	s.t.Helper()
	names := s.releases()
	if i < 0 {
		i += len(names)
	}
	rel := &shipper.Release{}
	if i < 0 || i >= len(names) {
		return rel
	}
	s.must(client.IgnoreNotFound(s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: names[i]}, rel)))
	return rel
}

// goTo moves the newest Release to a step.
func (s *rolloutFixture) goTo(step int32) {
	s.t.Helper()
	rel := s.release(-1)
	was := rel.DeepCopy()
	rel.Spec.TargetStep = step
	s.must(s.Patch(s.t.Context(), rel, client.MergeFrom(was)))
}

// goHalfWay moves the newest of two Releases to its second step.
func (s *rolloutFixture) goHalfWay() {
	s.t.Helper()
	s.goTo(1)
	s.until(halfLeft+" | "+halfDone, s.shares)
}

// detain keeps the InstallationTarget of a Release when it is deleted, until what it returns is called.
func (s *rolloutFixture) detain(rel *shipper.Release) (release func()) {
	s.t.Helper()
	it := &shipper.InstallationTarget{}
	s.must(s.Get(s.t.Context(), client.ObjectKeyFromObject(rel), it))
	was := it.DeepCopy()
	it.Finalizers = []string{"shipper.booking.com/test"}
	s.must(s.Patch(s.t.Context(), it, client.MergeFrom(was)))
	return func() {
		s.t.Helper()
		s.must(s.Patch(s.t.Context(), was, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}
}

// shares are the capacity and weight of every Release, oldest first: what is asked for, the same in all clusters, and
// where the Release is.
func (s *rolloutFixture) shares() string {
	s.t.Helper()
	var out []string
	for i := range s.releases() {
		rel := s.release(i)
		if rel.Name == "" {
			return "one is gone and still in history"
		}
		key := client.ObjectKeyFromObject(rel)
		ct, tt := &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
		s.must(client.IgnoreNotFound(s.Get(s.t.Context(), key, ct)))
		s.must(client.IgnoreNotFound(s.Get(s.t.Context(), key, tt)))
		var shares []string
		for i := range ct.Spec.Clusters {
			if i < len(tt.Spec.Clusters) {
				shares = append(shares, fmt.Sprintf("%d%%/%d", ct.Spec.Clusters[i].Percent, tt.Spec.Clusters[i].Weight))
			}
		}
		at := "-"
		if rel.Status.AchievedStep != nil {
			at = rel.Status.AchievedStep.Name
		}
		out = append(out, strings.Join(shares, " ")+" at "+at+s.waiting(rel))
	}
	return strings.Join(out, " | ")
}

func (s *rolloutFixture) waiting(rel *shipper.Release) string {
	if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
		return ", complete"
	}
	if st := rel.Status.Strategy; st != nil && st.State.WaitingForCommand == shipper.StrategyStateTrue {
		return ", waiting for command"
	}
	return ""
}

func condition(conditions []shipper.Condition, conditionType string) string {
	c := shipper.FindCondition(conditions, conditionType)
	if c == nil {
		return "none"
	}
	return strings.Join(strings.Fields(string(c.Status)+" "+c.Reason+" "+c.Message), " ")
}

func (s *rolloutFixture) appCondition(conditionType string) func() string {
	return func() string { return condition(s.app().Status.Conditions, conditionType) }
}

func (s *rolloutFixture) relCondition(i int, conditionType string) func() string {
	return func() string { return condition(s.release(i).Status.Conditions, conditionType) }
}

// everything is printed when a test fails.
func (s *rolloutFixture) everything() string {
	var b strings.Builder
	app := s.app()
	fmt.Fprintf(&b, "application %v\n  %+v\n", app.Annotations, app.Status)
	var rels shipper.ReleaseList
	s.must(s.List(s.t.Context(), &rels, client.InNamespace(s.namespace)))
	for _, rel := range rels.Items {
		fmt.Fprintf(&b, "release %s %v step %d\n  %+v\n", rel.Name, rel.Annotations, rel.Spec.TargetStep, rel.Status)
	}
	return b.String()
}

func (s *rolloutFixture) block(name string) *shipper.RolloutBlock {
	s.t.Helper()
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	b.Spec.Message = "no"
	s.must(s.Create(s.t.Context(), b))
	return b
}
