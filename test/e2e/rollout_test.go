// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/original"
)

// Test09RolloutAllIn has a client that replaces the Application some time after it has read it.
func Test09RolloutAllIn(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		s.isActive(incumbent)

		key := client.ObjectKey{Namespace: s.Namespace, Name: appName}
		err := original.Edit(s.Ctx, world.Management, key, func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		s.Must("updating the application", err)
		contender := s.Release(1)
		s.Completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
		s.endpoints(4)
	})
}

// isActive waits until the Application says that a Release is complete: from then on nothing but a change of its spec, or in a cluster,
// writes the Application.
func (s *fixture) isActive(release string) {
	s.Helper()
	want := fmt.Sprintf("False Release %q is active", release)
	s.Eventually("RollingOut of the application", want, func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
		c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationRollingOut)
		if c == nil {
			return "absent", err
		}
		return fmt.Sprintf("%s %s", c.Status, c.Message), err
	})
}

// Test12NewApplicationVanguard rolls a first Release out step by step, one of them back and forward again.
func Test12NewApplicationVanguard(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, vanguard))
		rel := s.Release(0)
		for i, at := range []struct {
			step int32
			pods int
		}{{0, 1}, {1, 2}, {0, 1}, {1, 2}} {
			if i > 0 {
				s.Steps(rel, at.step)
			}
			s.WaitsForCommand(rel, at.step)
			s.readyPods(rel, at.pods)
		}
		s.Steps(rel, 2)
		s.Completes(rel)
		s.readyPods(rel, 4)
	})
}

func Test16RolloutVanguard(t *testing.T) {
	onOneAndTwoClusters(t, func(s *fixture) { s.secondVanguard(4, [][2]int{{1, 4}, {2, 2}, {4, 0}}) })
}

func Test17RolloutVanguardOneReplica(t *testing.T) {
	onTwoClusters(t, func(s *fixture) { s.secondVanguard(1, [][2]int{{1, 1}, {1, 1}, {1, 0}}) })
}

// secondVanguard replaces a Release by another step by step, and counts the Pods of contender and incumbent at each.
func (s *fixture) secondVanguard(replicas int, pods [][2]int) {
	s.Helper()
	incumbent, contender := s.vanguardOverAllIn(replicas)
	for step, counts := range pods {
		if step > 0 {
			s.Steps(contender, int32(step))
		}
		if step == len(pods)-1 {
			s.Completes(contender)
		} else {
			s.WaitsForCommand(contender, int32(step))
		}
		s.readyPods(contender, counts[0])
		s.readyPods(incumbent, counts[1])
	}
	s.endpoints(replicas)
}

func Test20RolloutMovingStrategyBackwards(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.vanguardOverAllIn(4)
		s.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		s.Steps(contender, 0)
		s.WaitsForCommand(contender, 0)
		s.readyPods(contender, 1)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
	})
}

func Test10BrokenRolloutAllIn(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)

		s.Edits(func(app *shipper.Application) {
			(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "broken"}
		})
		contender := s.Release(1)
		s.complains(appName, shipper.StrategyInProgress, "capacity", west, east, "ImagePullBackOff")
		s.readyPods(contender, 0)
		s.readyPods(incumbent, 4)
		s.endpoints(4)
	})
}

func Test22NewApplicationAbort(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, vanguard))
		rel := s.Release(0)
		s.WaitsForCommand(rel, 0)
		s.Steps(rel, 1)
		s.WaitsForCommand(rel, 1)
		before, err := s.Get(rel)
		s.Must("reading the release", err)

		s.Must("deleting the only release", s.deletionOf(&shipper.Release{}, rel))
		s.Eventually("the release of the same name", "another", func() (string, error) {
			after, err := s.Get(rel)
			if err == nil && after.UID != before.UID && after.DeletionTimestamp == nil {
				return "another", nil
			}
			return "the old one, or none", client.IgnoreNotFound(err)
		})
		s.WaitsForCommand(rel, 0)
		s.readyPods(rel, 1)
	})
}

func Test23RolloutAbort(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.vanguardOverAllIn(4)
		s.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		s.readyPods(incumbent, 2)

		s.Must("deleting the contender", s.deletionOf(&shipper.Release{}, contender))
		s.settles(incumbent)
		s.readyPods(incumbent, 4)
		s.readyPods(contender, 0)
		s.endpoints(4)
		s.templateIs("0.0.1")
	})
}

func Test28DeletedDeploymentsAreReinstalled(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		rel := s.Release(0)
		s.Completes(rel)
		s.readyPods(rel, 4)
		for _, name := range s.clusters {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: rel + "-test-nginx"}}
			s.Must("deleting the deployment in "+name, world.Clusters[name].Delete(s.Ctx, deployment))
		}
		s.Eventually("the deployments", "new", func() (string, error) {
			for _, name := range s.clusters {
				list := &appsv1.DeploymentList{}
				err := world.Clusters[name].List(s.Ctx, list, client.InNamespace(s.Namespace))
				if err != nil || len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil {
					return "not there in " + name, err
				}
			}
			return "new", nil
		})
		s.settles(rel)
		s.readyPods(rel, 4)
		s.endpoints(4)
	})
}

func Test29TrafficIsRightOnStraightFullOn(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 0, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)

		next := s.application("0.0.2", 2, vanguard)
		s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
		contender := s.Release(1)
		s.Steps(contender, 2)
		s.Completes(contender)
		s.readyPods(contender, 2)
		s.endpoints(2)
	})
}

func Test30TwoApplicationsInANamespace(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		for _, name := range []string{"first", "second"} {
			app := s.application("0.0.1", 1, allIn)
			app.Name = name
			values := shipper.ChartValues{"replicaCount": int64(1), "nameOverride": name}
			app.Spec.Template.Values = &values
			s.applies(app)
		}
		for _, name := range []string{"first", "second"} {
			s.rolledOut(name)
			for _, cluster := range s.clusters {
				s.Eventually("the releases behind "+name+"-prod in "+cluster, "1 of "+name, s.behind(cluster, name))
			}
		}
	})
}

// vanguardOverAllIn rolls version 0.0.1 out at once, then 0.0.2 to step staging.
func (s *fixture) vanguardOverAllIn(replicas int) (incumbent, contender string) {
	s.Helper()
	s.applies(s.application("0.0.1", replicas, allIn))
	incumbent = s.Release(0)
	s.Completes(incumbent)

	next := s.application("0.0.2", replicas, vanguard)
	s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	contender = s.Release(1)
	s.WaitsForCommand(contender, 0)
	s.readyPods(contender, 1)
	s.readyPods(incumbent, replicas)
	s.endpoints(replicas)
	return incumbent, contender
}
