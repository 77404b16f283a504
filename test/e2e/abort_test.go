// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAbortWhileMoving deletes a contender that is between two steps.
func TestAbortWhileMoving(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(s *fixture, incumbent, contender string){
		"while the contender's pods are starting": func(s *fixture, _, contender string) {
			s.Steps(contender, 1)
			s.asked(contender, "50 50")
		},
		"while the incumbent's pods are going": func(s *fixture, incumbent, contender string) {
			s.Steps(contender, 1)
			s.WaitsForCommand(contender, 1)
			s.Steps(contender, 2)
			s.asked(incumbent, "0 0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			incumbent, contender := s.vanguardOverAllIn(4)
			until(s, incumbent, contender)
			s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
			s.templateIs("0.0.1")
			s.settles(incumbent)
			s.readyPods(incumbent, 4)
			s.readyPods(contender, 0)
			s.endpoints(4)
			for _, cluster := range s.clusters {
				s.holdsNothingBut(cluster, incumbent)
			}
		})
	}
}

// TestAbortReportsThatTheIncumbentWaitsForCapacity checks the condition that clients of the original wait for after an abort.
func TestAbortReportsThatTheIncumbentWaitsForCapacity(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			incumbent, contender := s.slowPair(4)
			s.Steps(contender, 1)
			s.WaitsForCommand(contender, 1)
			s.readyPods(incumbent, 2)
			ctx, cancel := context.WithTimeout(s.Ctx, 5*time.Minute)
			defer cancel()
			before := &shipper.ReleaseList{}
			s.Must("listing Releases", world.Management.List(ctx, before))
			s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
			err := changed(ctx, before, func(o client.Object) bool {
				rel, ok := o.(*shipper.Release)
				return ok && rel.Name == incumbent && rel.Namespace == s.Namespace && rel.Status.Strategy != nil &&
					rel.Status.Strategy.State.WaitingForCapacity == shipper.StrategyStateTrue
			})
			s.Must("waiting until the incumbent waits for capacity", err)
			s.settles(incumbent)
			s.readyPods(incumbent, 4)
			s.readyPods(contender, 0)
		})
	}
}

// TestAbortWhileAClusterIsDown is not parallel: no other test runs while a cluster is down.
func TestAbortWhileAClusterIsDown(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := s.vanguardOverAllIn(4)
	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
	s.readyPods(incumbent, 2)

	down := world.Fleet.Applications[1]
	s.stopsAPIServer(down)
	s.clusterIs(east, corev1.ConditionFalse)
	s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
	s.templateIs("0.0.1")
	alone := *s
	alone.clusters = []string{west}
	alone.Eventually("pods of the incumbent in "+west, "4 ready", func() (string, error) {
		ready, err := s.ready(west, incumbent)
		return fmt.Sprint(ready, " ready"), err
	})
	alone.endpoints(4)
	alone.Eventually("pods of the contender in "+west, "0 ready", func() (string, error) {
		ready, err := s.ready(west, contender)
		return fmt.Sprint(ready, " ready"), err
	})

	s.Must("starting the API server", down.StartAPIServer(s.Ctx))
	s.settles(incumbent)
	s.readyPods(incumbent, 4)
	s.readyPods(contender, 0)
	s.endpoints(4)
	s.holdsNothingBut(east, incumbent)
	s.nobodyDied()
}

// TestWhatIsDeletedWhileTheReconcilerIsAwayIsCleanedUp is not parallel: all tests share the reconciler.
func TestWhatIsDeletedWhileTheReconcilerIsAwayIsCleanedUp(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	_, contender := s.vanguardOverAllIn(2)
	s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
	s.Must("deleting the application", s.deletionOf(&shipper.Application{}, appName))
	app := &shipper.Application{}
	err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
	if err != nil || app.DeletionTimestamp == nil {
		t.Errorf("the application is not kept: %v", err)
	}
	s.readyPods(contender, 1) // only the reconciler cleans up

	s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx))
	for _, cluster := range s.clusters {
		s.holdsNothingBut(cluster)
	}
	s.Eventually("the installation targets", "gone", func() (string, error) {
		its := &shipper.InstallationTargetList{}
		err := world.Management.List(s.Ctx, its, client.InNamespace(s.Namespace))
		if len(its.Items) > 0 {
			return its.Items[0].Name + " is there", err
		}
		return "gone", err
	})
}

// holdsNothingBut waits until a cluster has Shipper's objects of these Releases only.
func (s *fixture) holdsNothingBut(cluster string, releases ...string) {
	s.Helper()
	s.Eventually("releases that "+cluster+" has something of", strings.Join(releases, " "), func() (string, error) {
		var seen []string
		for _, list := range []client.ObjectList{
			&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.PodList{},
		} {
			err := world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace), client.HasLabels{shipper.ReleaseLabel})
			if err != nil {
				return "", err
			}
			for _, object := range itemsOf(list) {
				seen = append(seen, object.GetLabels()[shipper.ReleaseLabel])
			}
		}
		slices.Sort(seen)
		return strings.Join(slices.Compact(seen), " "), nil
	})
}
