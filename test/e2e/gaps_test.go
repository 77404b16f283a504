// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// The tests of this file have no number: the original's scenarios lack them.

func TestStepsSkippedBackwards(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.vanguardOverAllIn(4)
		s.Steps(contender, 2)
		s.Completes(contender)
		s.readyPods(incumbent, 0)
		s.Steps(contender, 0)
		s.WaitsForCommand(contender, 0)
		s.readyPods(contender, 1)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
	})
}

// TestSupersededContenderServesUntilItIsCovered replaces a contender at 50/50 by a third Release.
func TestSupersededContenderServesUntilItIsCovered(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, superseded := s.vanguardOverAllIn(4)
		s.Steps(superseded, 1)
		s.WaitsForCommand(superseded, 1)
		s.readyPods(superseded, 2)
		s.endpoints(4)

		served := s.serving()
		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["note"] = "third" })
		s.Eventually("the newest release", "a third", func() (string, error) {
			app := &shipper.Application{}
			err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
			h := app.Status.History
			if len(h) == 2 && h[0] == incumbent && h[1] != superseded {
				return "a third", err
			}
			return strings.Join(h, " "), err
		})
		if least := served(); least < 4 {
			t.Errorf("a cluster served with %d endpoints while the contender was superseded, want 4 at least", least)
		}
		contender := s.Release(1)
		s.WaitsForCommand(contender, 0)
		s.readyPods(contender, 1)
		s.readyPods(superseded, 0)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
	})
}

// TestClusterTakenFromAReleaseLeavesTheOthersAlone removes a cluster from a Release that serves, and adds it again.
func TestClusterTakenFromAReleaseLeavesTheOthersAlone(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		rel := s.Release(0)
		s.Completes(rel)
		s.endpoints(4)
		stays := s.identities(west)

		both := s.clusters
		for _, now := range [][]string{{west}, both} {
			s.clusters = []string{west}
			served := s.serving()
			s.places(rel, now...)
			s.clusters = now
			s.readyPods(rel, 4) // none in the other cluster
			s.endpoints(4)
			if least := served(); least < 4 {
				t.Errorf("in %v, the cluster that stayed served with %d endpoints, want 4 always", now, least)
			}
			s.settles(rel)
			s.Completes(rel)
			if diff := cmp.Diff(stays, s.identities(west)); diff != "" {
				t.Errorf("in %v, the cluster that stayed was changed (-before +after):\n%s", now, diff)
			}
		}
	})
}

// places edits the annotation that lists the clusters of a Release.
func (s *fixture) places(release string, clusters ...string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, shipper.ReleaseClustersAnnotation, strings.Join(clusters, ","))
	s.Must("changing the clusters", world.Management.Patch(s.Ctx,
		&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}},
		client.RawPatch(types.MergePatchType, patch)))
}

// identities lists the Pods of a cluster by UID, and the Deployments and Services by UID and generation, so that edited and
// replaced objects show.
func (s *fixture) identities(cluster string) []string {
	s.Helper()
	var out []string
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}} {
		s.Must("listing", world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace), client.HasLabels{shipper.AppLabel}))
		for _, object := range itemsOf(list) {
			out = append(out, fmt.Sprintf("%T %s %s %d", object, object.GetName(), object.GetUID(), object.GetGeneration()))
		}
	}
	slices.Sort(out)
	return out
}

// itemsOf are the objects of a list.
func itemsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			out = append(out, object)
		}
		return nil
	})
	return out
}

func TestRollbackGrowsTheIteration(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 1, allIn))
		first := s.Release(0)
		s.Completes(first)
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		s.Completes(s.Release(1))
		rel, err := s.Get(first)
		s.Must("reading the first release", err)
		s.Edits(func(app *shipper.Application) { app.Spec.Template = rel.Spec.Environment })
		back := s.Release(2)
		s.Completes(back)
		if want := strings.TrimSuffix(first, "-0") + "-1"; back != want {
			t.Errorf("the release that rolls back is %s, want %s", back, want)
		}
		s.readyPods(back, 1)
		s.readyPods(first, 0)
	})
}

func TestHistoryIsTrimmedToItsLimit(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 1, allIn)
		app.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		s.applies(app)
		newest := s.Release(0)
		s.Completes(newest)
		for i := range 3 {
			before := newest
			s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["round"] = int64(i) })
			s.Eventually("the history", "the last release and its predecessor", func() (string, error) {
				app := &shipper.Application{}
				err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
				h := app.Status.History
				if len(h) == 2 && h[0] == before {
					newest = h[1]
					return "the last release and its predecessor", err
				}
				return strings.Join(h, " "), err
			})
			s.Completes(newest)
		}
		s.readyPods(newest, 1)
	})
}

// TestSharedObjectsFollowTheNewestReleaseAndReturnOnAbort uses a chart with a ConfigMap of a fixed name.
func TestSharedObjectsFollowTheNewestReleaseAndReturnOnAbort(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 2, vanguard)
		app.Spec.Template.Chart.Name = "configmap"
		(*app.Spec.Template.Values)["message"] = "from the incumbent"
		s.applies(app)
		incumbent := s.Release(0)
		s.Steps(incumbent, 2)
		s.Completes(incumbent)
		s.greets("from the incumbent")

		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["message"] = "from the contender" })
		contender := s.Release(1)
		s.WaitsForCommand(contender, 0)
		s.greets("from the contender")

		s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
		s.greets("from the incumbent")
		s.settles(incumbent)
		s.readyPods(incumbent, 2)
	})
}

// greets waits until the ConfigMap that all Releases of the chart share has a greeting, in each cluster.
func (s *fixture) greets(greeting string) {
	s.Helper()
	for _, name := range s.clusters {
		s.Eventually("the shared ConfigMap in "+name, greeting, func() (string, error) {
			list := &corev1.ConfigMapList{}
			err := world.Clusters[name].List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.AppLabel: appName})
			for _, cm := range list.Items {
				if seen, found := cm.Data["message"]; found {
					return seen, err
				}
			}
			return "no such ConfigMap", err
		})
	}
}

func TestRegionMayAskForSeveralClusters(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 1, allIn)
		app.Spec.Template.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: westRegion, Replicas: ptr.To[int32](2)}}
		s.applies(app)
		s.complains(appName, shipper.NotEnoughClustersInRegion, westRegion)
	})
}

// TestReconcilerKilledMidStep is not parallel: all tests share the reconciler.
func TestReconcilerKilledMidStep(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := s.vanguardOverAllIn(4)
	s.Steps(contender, 1)
	world.Pod.Reconciler.Kill()
	s.Must("starting the reconciler again", world.Pod.StartReconciler(s.Ctx))
	s.WaitsForCommand(contender, 1)
	s.readyPods(contender, 2)
	s.readyPods(incumbent, 2)
	s.endpoints(4)
}

// TestPodsBornWhileShipperIsAwayGetTraffic is not parallel: all tests share the reconciler. While two Releases share traffic,
// the Service selects Pods by a label that only Shipper sets.
func TestPodsBornWhileShipperIsAwayGetTraffic(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := s.vanguardOverAllIn(4)
	s.endpoints(4)
	s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
	s.replaces(west, incumbent)
	s.readyPods(incumbent, 4)
	var born corev1.PodList
	s.Must("listing pods", world.Clusters[west].List(s.Ctx, &born, client.InNamespace(s.Namespace),
		client.MatchingLabels{shipper.ReleaseLabel: incumbent}))
	var names []string
	for i := range born.Items {
		names = append(names, born.Items[i].Name)
	}
	slices.Sort(names)
	s.Eventually("endpoints in "+west+" without Shipper", fmt.Sprint(names), func() (string, error) {
		in, err := s.endpointPods(west)
		return fmt.Sprint(in), err
	})
	s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx))

	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
	s.endpoints(4)
	s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
	s.replaces(west, contender)
	s.readyPods(contender, 2)
	s.Eventually("endpoints in "+west+" without Shipper", "3", func() (string, error) {
		ready, err := s.readyEndpoints(west)
		return fmt.Sprint(ready), err
	})
	s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx))
	s.endpoints(4)
}

// TestSelectionByReleaseCanBeUndone is not parallel: all tests share the reconciler. Pods that serve without a label get one
// before the Service selects by it.
func TestSelectionByReleaseCanBeUndone(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	s.applies(s.application("0.0.1", 4, allIn))
	rel := s.Release(0)
	s.Completes(rel)
	s.endpoints(4)
	served := s.serving()
	for _, one := range []struct{ flag, selects string }{
		{"--select-by-release=false", shipper.TrafficStatusLabel + ":" + shipper.TrafficEnabled},
		{"--select-by-release", shipper.ReleaseLabel + ":" + rel},
	} {
		s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
		s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx, one.flag))
		for _, cluster := range []string{west, east} {
			want := fmt.Sprintf("map[%s:%s %s]", shipper.AppLabel, appName, one.selects)
			s.Eventually("what the Service selects in "+cluster, want, func() (string, error) {
				service := &corev1.Service{}
				err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: "test-nginx-prod"}, service)
				return fmt.Sprint(service.Spec.Selector), err
			})
		}
		s.endpoints(4)
	}
	if least := served(); least < 4 {
		t.Errorf("a cluster served with %d endpoints meanwhile, want 4 always", least)
	}
}

// TestOddSteps has a step that takes Pods from the contender, one without traffic weights, and weights of any sum.
func TestOddSteps(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		next := s.application("0.0.2", 4, strategy{
			{"load test", 100, 75, 3, 1}, {"maintenance", 100, 25, 0, 0}, {"a quarter", 100, 100, 3, 1}, {"full on", 0, 100, 0, 1},
		})
		s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
		contender := s.Release(1)
		for step, want := range []struct{ contender, incumbent, endpoints int }{{3, 4, 6}, {1, 4, 0}, {4, 4, 6}} {
			s.Steps(contender, int32(step))
			s.WaitsForCommand(contender, int32(step))
			s.readyPods(contender, want.contender)
			s.readyPods(incumbent, want.incumbent)
			s.endpoints(want.endpoints)
		}
		served := s.serving()
		s.Steps(contender, 3)
		s.Completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
		s.endpoints(4)
		if least := served(); least < 4 {
			t.Errorf("a cluster served with %d endpoints during the last step, want 4 at least", least)
		}
	})
}

// TestRepositoryDownDisturbsNothingThatRuns is not parallel: all tests share the chart repository.
func TestRepositoryDownDisturbsNothingThatRuns(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := s.vanguardOverAllIn(4)
	world.Charts.Break(charts.Missing)
	defer world.Charts.Heal()
	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
	s.readyPods(incumbent, 2)
	for _, rel := range []string{incumbent, contender} {
		got, err := s.Get(rel)
		s.Must("reading a release", err)
		if !shipper.ConditionTrue(got.Status.Conditions, shipper.ReleaseScheduled) {
			t.Errorf("Scheduled of %s is not True while the repository is down", rel)
		}
	}
	world.Charts.Heal()
	s.Steps(contender, 2)
	s.Completes(contender)
}

// serving watches the Service's endpoints in the fixture's clusters until the function it returns is called, which returns
// the lowest number that any cluster had.
func (s *fixture) serving() func() int { return s.servingOf("test-nginx-prod") }

// servingOf is serving for another Service.
func (s *fixture) servingOf(service string) func() int {
	stop, least, clusters := make(chan struct{}), make(chan int), slices.Clone(s.clusters)
	go func() {
		fewest := 1 << 30
		for {
			for _, name := range clusters {
				if in, err := s.endpointPodsOf(name, service); err == nil {
					fewest = min(fewest, len(in))
				}
			}
			select {
			case <-stop:
				least <- fewest
				return
			default:
			}
		}
	}()
	return func() int { close(stop); return <-least }
}

// TestKubectlWaits checks that `kubectl wait` works for rollouts.
func TestKubectlWaits(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 2, allIn))
		rel := s.Release(0)
		kubectl, err := fleet.Kubectl()
		s.Must("finding kubectl", err)
		for _, args := range [][]string{
			{"wait", "--for=condition=Complete", "rel/" + rel},
			{"wait", "--for=condition=RollingOut=False", "app/" + appName},
			{"wait", "--for=jsonpath={.status.achievedStep.name}=full on", "rel/" + rel},
		} {
			cmd := exec.CommandContext(s.Ctx, kubectl, append(args, "-n", s.Namespace, "--timeout", env.Patience.String(),
				"--kubeconfig", world.Fleet.Management.Kubeconfig)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
}
