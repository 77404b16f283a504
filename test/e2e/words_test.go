// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// blockName is the RolloutBlock of every test, in its own namespace.
const blockName = "my-test-rollout-block"

// blocks creates a RolloutBlock in the test's namespace, waits until the webhook enforces it, and returns the name that an
// override must give. The webhook learns of a block by a watch, some milliseconds after its creation.
func (s *fixture) blocks() string {
	s.Helper()
	return s.blocksIn(s.Namespace, blockName)
}

// blocksGlobally is blocks for all namespaces, until the test ends. The block has a name of its own, so that no other test's
// override matches it.
func (s *fixture) blocksGlobally() string {
	s.Helper()
	block := s.blocksIn(shipper.GlobalBlocksNamespace, s.Namespace)
	s.Cleanup(func() {
		rb := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: s.Namespace}}
		if err := client.IgnoreNotFound(world.Management.Delete(context.Background(), rb)); err != nil {
			s.Errorf("lifting the global block: %v", err)
		}
	})
	return block
}

func (s *fixture) blocksIn(namespace, name string) string {
	s.Helper()
	rb := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: shipper.RolloutBlockSpec{
			Message: "Simulate rollout block", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "testUser"},
		},
	}
	s.Must("creating the rollout block", world.Management.Create(s.Ctx, rb))
	s.rehearses(rb, "refused")
	return rb.Namespace + "/" + rb.Name
}

// rehearses waits until the webhook knows a block, or its deletion, by the result of a creation with dry run.
func (s *fixture) rehearses(rb *shipper.RolloutBlock, expected string) {
	s.Helper()
	s.Eventually("a rehearsed creation under the block", expected, func() (string, error) {
		probe := s.application("0.0.1", 1, allIn)
		probe.Name = "probe"
		if err := world.Management.Create(s.Ctx, probe, client.DryRunAll); err != nil &&
			strings.Contains(err.Error(), rb.Namespace+"/"+rb.Name) {
			return "refused", nil
		}
		return "admitted", nil
	})
}

// blocksWith creates the test's RolloutBlock with the fields that spec sets, and returns when the webhook knows it: when it
// knows a probe block that was created later.
func (s *fixture) blocksWith(spec func(*shipper.RolloutBlockSpec)) *shipper.RolloutBlock {
	s.Helper()
	rb := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: blockName},
		Spec: shipper.RolloutBlockSpec{
			Message: "Simulate rollout block", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "testUser"},
		},
	}
	spec(&rb.Spec)
	s.Must("creating the rollout block", world.Management.Create(s.Ctx, rb))
	probe := map[string]string{"probe": "only"}
	later := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "probe-"},
		Spec: shipper.RolloutBlockSpec{Message: "Probe", Scope: &shipper.RolloutBlockScope{
			Applications: &metav1.LabelSelector{MatchLabels: probe},
		}},
	}
	s.Must("creating another", world.Management.Create(s.Ctx, later))
	s.Eventually("a rehearsed creation under a later block", "refused", func() (string, error) {
		app := s.application("0.0.1", 1, allIn)
		app.Name, app.Labels = "probe", probe
		if err := world.Management.Create(s.Ctx, app, client.DryRunAll); err != nil && strings.Contains(err.Error(), later.Name) {
			return "refused", nil
		}
		return "admitted", nil
	})
	return rb
}

// lifts deletes a block, and returns when the webhook has noticed.
func (s *fixture) lifts(block string) {
	s.Helper()
	namespace, name, _ := strings.Cut(block, "/")
	rb := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Must("lifting the block", world.Management.Delete(s.Ctx, rb))
	s.rehearses(rb, "admitted")
}

// saysBlocked waits until Application and Release name the block that stops them.
func (s *fixture) saysBlocked(release, block string) {
	s.Helper()
	s.saysOfBlocks(release, "True RolloutsBlocked rollouts blocked by: "+block)
}

// saysUnblocked waits until Application and Release report that no block stops them.
func (s *fixture) saysUnblocked(release string) {
	s.Helper()
	s.saysOfBlocks(release, "False")
}

func (s *fixture) saysOfBlocks(release, want string) {
	s.Helper()
	s.Eventually("Blocked of the application", want, func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app)
		return sayBlocked(app.Status.Conditions), err
	})
	s.releaseSaysOfBlocks(release, want)
}

func (s *fixture) releaseSaysOfBlocks(release, want string) {
	s.Helper()
	s.Eventually("Blocked of the release", want, func() (string, error) {
		rel, err := s.Get(release)
		return sayBlocked(rel.Status.Conditions), err
	})
}

// sayBlocked returns the condition Blocked as text.
func sayBlocked(conditions []shipper.Condition) string {
	c := shipper.FindCondition(conditions, shipper.ReleaseBlocked)
	if c == nil {
		return "nothing"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
}

// listed waits until the block's status lists exactly these overriding objects.
func (s *fixture) listed(block, application, release string) {
	s.Helper()
	namespace, name, _ := strings.Cut(block, "/")
	s.Eventually("overrides of "+block, application+" "+release, func() (string, error) {
		rb := &shipper.RolloutBlock{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, rb)
		return rb.Status.Overrides.Application + " " + rb.Status.Overrides.Release, err
	})
}

// toldOf waits for an event about an object of the namespace with a reason and a note, which may be one line of several.
func (s *fixture) toldOf(kind, name, reason, note string) {
	s.Helper()
	want := reason + ": " + note
	s.Eventually("an event about "+kind+" "+name, want, func() (string, error) {
		list := &eventsv1.EventList{}
		err := world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace))
		var seen []string
		for _, event := range list.Items {
			if event.Regarding.Kind != kind || event.Regarding.Name != name {
				continue
			}
			if event.Reason == reason && strings.Contains(event.Note, note) {
				return want, err
			}
			seen = append(seen, event.Reason+": "+event.Note)
		}
		return strings.Join(seen, "; "), err
	})
}

// targets returns the specs of the targets of a Release.
func (s *fixture) targets(release string) []any {
	s.Helper()
	key := client.ObjectKey{Namespace: s.Namespace, Name: release}
	it, ct, tt := &shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
	for _, target := range []client.Object{it, ct, tt} {
		s.Must("reading a target", world.Management.Get(s.Ctx, key, target))
	}
	return []any{it.Spec, ct.Spec, tt.Spec}
}

// settles waits until the state of the Release reports that it waits for nothing.
func (s *fixture) settles(release string) {
	s.Helper()
	s.Eventually("state of "+release, "False False False False", func() (string, error) {
		rel, err := s.Get(release)
		if err != nil || rel.Status.Strategy == nil {
			return "none", err
		}
		st := rel.Status.Strategy.State
		return fmt.Sprint(st.WaitingForInstallation, " ", st.WaitingForCapacity, " ", st.WaitingForTraffic, " ", st.WaitingForCommand), nil
	})
}

// templateIs waits until the Application's template has that chart version.
func (s *fixture) templateIs(version string) {
	s.Helper()
	s.Eventually("the version in the application's template", version, func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app)
		return app.Spec.Template.Chart.Version, err
	})
}

// rolledOut waits until an Application reports that its rollout has ended.
func (s *fixture) rolledOut(application string) {
	s.Helper()
	s.Eventually("RollingOut of "+application, "False", func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: application}, app)
		if c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationRollingOut); c != nil {
			return string(c.Status), err
		}
		return "absent", err
	})
}

// behind counts the Pods behind the Service of an Application in a cluster, by Application.
func (s *fixture) behind(cluster, application string) func() (string, error) {
	return func() (string, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: application + "-prod"})
		if err != nil {
			return "", err
		}
		counts := map[string]int{}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				pod := &corev1.Pod{}
				if err := world.Clusters[cluster].Get(s.Ctx,
					client.ObjectKey{Namespace: s.Namespace, Name: e.TargetRef.Name}, pod); err != nil {
					return "", err
				}
				counts[pod.Labels[shipper.AppLabel]]++
			}
		}
		var all []string
		for app, count := range counts {
			all = append(all, fmt.Sprintf("%d of %s", count, app))
		}
		slices.Sort(all)
		return strings.Join(all, ", "), nil
	}
}
