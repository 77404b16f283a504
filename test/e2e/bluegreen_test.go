// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// blueGreen is preview on half of the Pods behind a gate, a switch, and the end of the Release before. The incumbent stands by for a
// second.
func (s *fixture) blueGreen(edits ...func(*shipper.RolloutStrategy)) *shipper.Application {
	app := s.application("0.0.1", 4, strategy{{"preview", 100, 50, 100, 0}, {"switched", 100, 100, 0, 100}, {"full on", 0, 100, 0, 100}})
	app.Spec.Template.Chart.Name = "blue-green"
	st := app.Spec.Template.Strategy
	st.FirstRelease, st.Steps[0].Gate, st.Steps[1].After = shipper.FirstReleaseImmediate, &shipper.StepGate{}, "1s"
	for _, edit := range edits {
		edit(st)
	}
	return app
}

// previews rolls out the Application, and then a Release that waits at its gate.
func (s *fixture) previews(edits ...func(*shipper.RolloutStrategy)) (blue, green string) {
	s.Helper()
	s.applies(s.blueGreen(edits...))
	blue = s.Release(0)
	s.Completes(blue)
	green = s.next(blue, "green")
	s.advancing(green, 0, "False AwaitingCommand")
	return blue, green
}

// services waits until the Services of the chart have, in each cluster of the fixture, these numbers of ready endpoints by Release.
func (s *fixture) services(production, preview map[string]int) {
	s.Helper()
	for _, name := range s.clusters {
		s.Eventually("endpoints in "+name, fmt.Sprint("production ", production, ", preview ", preview), func() (string, error) {
			active, err := s.endpointsOf(name, "blue-green-prod")
			if err != nil {
				return "", err
			}
			shown, err := s.endpointsOf(name, "blue-green-preview")
			return fmt.Sprint("production ", active, ", preview ", shown), err
		})
	}
}

// endpointsOf counts the ready endpoints of a Service in a cluster by Release.
func (s *fixture) endpointsOf(cluster, service string) (map[string]int, error) {
	list, pods := &discoveryv1.EndpointSliceList{}, &corev1.PodList{}
	c := world.Clusters[cluster]
	if err := c.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return nil, err
	}
	if err := c.List(s.Ctx, pods, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	release := map[string]string{}
	for i := range pods.Items {
		release[pods.Items[i].Name] = pods.Items[i].Labels[shipper.ReleaseLabel]
	}
	out := map[string]int{}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil {
				out[release[e.TargetRef.Name]]++
			}
		}
	}
	return out, nil
}

// next changes a value, and returns the Release that this makes after another.
func (s *fixture) next(before, note string) string {
	s.Helper()
	s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["note"] = note })
	return s.newestBut(before)
}

// newestBut waits until the newest Release is another than the one before.
func (s *fixture) newestBut(before string) (newest string) {
	s.Helper()
	s.Eventually("the newest release", "another", func() (string, error) {
		history, err := s.History(s.App)
		if len(history) == 0 || history[len(history)-1] == before {
			return "the same", err
		}
		newest = history[len(history)-1]
		return "another", err
	})
	return newest
}

// trafficWrites lists what Shipper wrote to Services and Pods of the test's namespace in a cluster, in order.
func (s *fixture) trafficWrites(cluster string) []string {
	s.Helper()
	var out []string
	for _, c := range world.Fleet.Applications {
		if c.Name != cluster {
			continue
		}
		all, err := pod.Written(c, shipper.ApplicationServiceAccount)
		s.Must("reading what was written", err)
		for _, line := range all {
			if fields := strings.Fields(line); len(fields) > 1 && (fields[1] == "services" || fields[1] == "pods") &&
				strings.HasSuffix(line, " in "+s.Namespace) {
				out = append(out, strings.TrimSuffix(line, " in "+s.Namespace))
			}
		}
	}
	return out
}

func (s *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
}

// TestBlueGreen goes through the three steps on two clusters: preview beside production, a switch in one turn, the end of the old Pods.
func TestBlueGreen(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.blueGreen())
		blue := s.Release(0)
		s.Completes(blue)
		s.services(map[string]int{blue: 4}, map[string]int{blue: 4}) // idle: the preview shows who serves

		green := s.next(blue, "green")
		s.advancing(green, 0, "False AwaitingCommand")
		s.services(map[string]int{blue: 4}, map[string]int{green: 2})
		before := map[string]int{}
		for _, name := range s.clusters {
			before[name] = len(s.trafficWrites(name))
		}
		served := s.servingOf("blue-green-prod")
		s.Steps(green, 1)
		s.Completes(green)
		if least := served(); least < 4 {
			t.Errorf("a cluster served with %d endpoints on the way, want 4 at least", least)
		}
		s.services(map[string]int{green: 4}, map[string]int{green: 4})
		s.readyPods(blue, 0)
		for _, name := range s.clusters {
			if diff := cmp.Diff([]string{"patch services blue-green-prod"}, s.trafficWrites(name)[before[name]:]); diff != "" {
				t.Errorf("written to Services and Pods of %s for the switch (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestPreviewFollowsTheNewest abandons a Release at its gate by an edit, and the next by an abort.
func TestPreviewFollowsTheNewest(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		blue, green := s.previews()
		s.services(map[string]int{blue: 4}, map[string]int{green: 2})

		shown := s.servingOf("blue-green-preview")
		red := s.next(green, "red")
		s.advancing(red, 0, "False AwaitingCommand")
		s.services(map[string]int{blue: 4}, map[string]int{red: 2})
		s.readyPods(green, 0)
		if least := shown(); least < 1 {
			t.Errorf("the preview had %d endpoints while another Release came, want some at any time", least)
		}
		s.Must("deleting the contender", s.User.Delete(s.Ctx, &shipper.Release{ObjectMeta: s.meta(red)}))
		s.services(map[string]int{blue: 4}, map[string]int{blue: 4})
		s.readyPods(red, 0)
	})
}

// TestPreviewIsEmptyWhenIdle has previewWhenIdle None: no Pods before, during and after a rollout but for its own.
func TestPreviewIsEmptyWhenIdle(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.blueGreen(func(st *shipper.RolloutStrategy) { st.PreviewWhenIdle = shipper.PreviewWhenIdleNone }))
		blue := s.Release(0)
		s.Completes(blue)
		s.services(map[string]int{blue: 4}, map[string]int{})
		green := s.next(blue, "green")
		s.advancing(green, 0, "False AwaitingCommand")
		s.services(map[string]int{blue: 4}, map[string]int{green: 2})
		s.Steps(green, 1)
		s.Completes(green)
		s.services(map[string]int{green: 4}, map[string]int{})
	})
}

// TestEditedSelectorsOpenNoGate clears the selector of the production Service and edits that of the preview while the gate is closed:
// Argo's #4750, RS8 and RS3.
func TestEditedSelectorsOpenNoGate(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		blue, green := s.previews()
		for service, selector := range map[string]string{"blue-green-prod": "null", "blue-green-preview": `{"shipper-app":"other"}`} {
			for _, cluster := range s.clusters {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":null}}`))
				if selector != "null" {
					patch = client.RawPatch("application/json-patch+json", []byte(`[{"op":"replace","path":"/spec/selector","value":`+selector+`}]`))
				}
				s.Must("editing a selector", world.Clusters[cluster].Patch(s.Ctx, &corev1.Service{ObjectMeta: s.meta(service)}, patch))
			}
		}
		s.services(map[string]int{blue: 4}, map[string]int{green: 2})
		s.advancing(green, 0, "False AwaitingCommand")
		s.Steps(green, 1)
		s.Completes(green)
		s.services(map[string]int{green: 4}, map[string]int{green: 4})
	})
}

// TestASwitchIsSwitchedBack goes back from the switched step, and forward again.
func TestASwitchIsSwitchedBack(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		blue, green := s.previews(func(st *shipper.RolloutStrategy) { st.Steps[1].After = "" })
		served := s.servingOf("blue-green-prod")
		s.Steps(green, 1)
		s.advancing(green, 1, "False AwaitingCommand")
		s.services(map[string]int{green: 4}, map[string]int{green: 4})
		s.Steps(green, 0)
		s.advancing(green, 0, "False HeldAfterGoingBack")
		s.services(map[string]int{blue: 4}, map[string]int{green: 2})
		s.Steps(green, 1)
		s.advancing(green, 1, "False AwaitingCommand")
		s.services(map[string]int{green: 4}, map[string]int{green: 4})
		s.Must("deleting the contender", s.User.Delete(s.Ctx, &shipper.Release{ObjectMeta: s.meta(green)}))
		s.services(map[string]int{blue: 4}, map[string]int{blue: 4})
		s.readyPods(green, 0)
		if least := served(); least < 4 {
			t.Errorf("a cluster served with %d endpoints on the way, want 4 at least", least)
		}
	})
}

// TestARollbackBehindAClosedGateEnds goes back to the Release that serves while another waits at its gate: Argo's RS10.
func TestARollbackBehindAClosedGateEnds(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		blue, green := s.previews()
		s.Edits(func(app *shipper.Application) {
			app.Spec.RollbackTo = &shipper.RollbackTo{Release: blue, Strategy: shipper.RollbackImmediate}
		})
		back := s.newestBut(green)
		s.Completes(back)
		s.readyPods(green, 0)
		s.services(map[string]int{back: 4}, map[string]int{back: 4})
	})
}

// TestAChangeOfReplicasBehindAClosedGate asks for six Pods in place of four while a Release waits at its gate: Argo's RS13.
func TestAChangeOfReplicasBehindAClosedGate(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		blue, green := s.previews()
		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["replicaCount"] = 6 })
		larger := s.newestBut(green)
		s.advancing(larger, 0, "False AwaitingCommand")
		s.services(map[string]int{blue: 4}, map[string]int{larger: 3})
		s.Steps(larger, 1)
		s.Completes(larger)
		s.services(map[string]int{larger: 6}, map[string]int{larger: 6})
		s.readyPods(green, 0)
	})
}
