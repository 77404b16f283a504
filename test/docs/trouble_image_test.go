// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	testenv "shipper.dev/shipper/test/env"
)

// maxNote is how long the text of an event may be.
const maxNote = 1024

// TestAnImageThatCannotBePulled walks from the symptom to the cause and to the cure, as the algorithm has it.
func TestAnImageThatCannotBePulled(t *testing.T) {
	u := begin(t)
	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "stable"))
	good := u.newest(1)
	u.completes(good)

	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "broken"))
	bad := u.newest(2)
	// The first step asks for one Pod. A step need not be achieved for the next one to be asked for.
	u.saysItWaitsForCapacity(bad, 0, 1)
	u.moves(bad, 1)
	u.saysItWaitsForCapacity(bad, 1, 6)

	t.Run("the release says what it waits for", func(t *testing.T) { u.on(t).releaseTells(bad) })
	t.Run("the installation target is well", func(t *testing.T) { u.on(t).describes("it", bad, well...) })
	t.Run("the capacity target says why", func(t *testing.T) { u.on(t).capacityTells(bad) })
	t.Run("the traffic target is well, for no traffic is asked for yet", func(t *testing.T) {
		u.on(t).describes("tt", bad, append([]string{"Weight: 0", "Achieved Traffic: 0"}, well...)...)
	})
	t.Run("the incumbent goes on serving", func(t *testing.T) {
		u := u.on(t)
		if n := u.serving(good); n != 6 {
			t.Errorf("%d pods of the incumbent serve, want 6", n)
		}
		u.describes("ct", good, append([]string{"Achieved Percent: 100", "Available Replicas: 6"}, well...)...)
	})

	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "mended"))
	u.Eventually("the newest release", "another", func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: appName}, app)
		if h := app.Status.History; len(h) > 0 && h[len(h)-1] != bad {
			return "another", err
		}
		return bad, err
	})
	app := &shipper.Application{}
	u.get(appName, app)
	mended := app.Status.History[len(app.Status.History)-1]
	u.completes(mended)
	u.kubectl("wait", "--for=delete", "rel/"+bad, "--timeout="+testenv.Patience.String())
	u.Eventually("pods that serve", "0 and 6", func() (string, error) {
		return fmt.Sprint(u.serving(good), " and ", u.serving(mended)), nil
	})
	t.Run("events tell the story", func(t *testing.T) { u.on(t).eventsTell(good, bad, mended) })
}

// well is what kubectl describe says of a target that is as it should be. Blanks are squeezed.
var well = []string{"Status: True Type: Operational", "Status: True Type: Ready"}

// on is the same user in a sub-test.
func (u *user) on(t *testing.T) *user {
	other := *u
	other.T, other.Ctx = t, t.Context()
	return &other
}

// saysItWaitsForCapacity waits until the condition of the step names the reason and the number of Pods.
func (u *user) saysItWaitsForCapacity(release string, step int32, pods int) {
	u.Helper()
	want := fmt.Sprintf(`step %d False ClustersNotReady release %q hasn't achieved capacity in clusters: %s: PodsNotReady `+
		`%d/%d: %dx"test-nginx" containers with [ImagePullBackOff]. for more details try `+"`kubectl describe ct %s`",
		step, release, west, pods, pods, pods, release)
	u.Eventually("ContenderAchievedCapacity", want, func() (string, error) {
		rel := &shipper.Release{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: release}, rel)
		if rel.Status.Strategy == nil {
			return "nothing", err
		}
		for _, c := range rel.Status.Strategy.Conditions {
			if c.Type == shipper.StrategyContenderAchievedCapacity {
				return fmt.Sprintf("step %d %s %s %s", c.Step, c.Status, c.Reason, c.Message), err
			}
		}
		return "no condition", err
	})
}

// describes waits until kubectl describe says all phrases, blanks squeezed: events come later than their cause. It returns what
// was said.
func (u *user) describes(kind, name string, phrases ...string) (words string) {
	u.Helper()
	u.Eventually("kubectl describe "+kind+" "+name, "says all", func() (string, error) {
		out, err := u.run(u.Ctx, "", "describe", kind, name)
		words = strings.Join(strings.Fields(out), " ")
		for _, phrase := range phrases {
			if !strings.Contains(words, phrase) {
				return fmt.Sprintf("does not say %q:\n%s", phrase, out), err
			}
		}
		return "says all", err
	})
	return words
}

func (u *user) releaseTells(release string) {
	u.Helper()
	out := u.describes("rel", release,
		"Status: True Type: Scheduled",
		"Reason: StrategyInProgress Status: False Type: StrategyExecuted",
		"Reason: StrategyNotComplete Status: False Type: Complete",
		"Status: True Step: 1 Type: ContenderAchievedInstallation",
		"Reason: ClustersNotReady Status: False Step: 1 Type: ContenderAchievedCapacity",
		"Waiting For Capacity: True Waiting For Command: False Waiting For Installation: False Waiting For Traffic: False",
		"shipper.booking.com/release.clusters: "+west,
		"kubectl describe ct "+release,
	)
	if strings.Contains(out, "Achieved Step") {
		u.Errorf("a step is said to be achieved:\n%s", out)
	}
	columns := u.kubectl("get", "rel", release)
	for _, word := range []string{"ContenderAchievedCapacity", "ImagePullBackOff", west} {
		if !strings.Contains(columns, word) {
			u.Errorf("the columns do not say %q:\n%s", word, columns)
		}
	}
}

func (u *user) capacityTells(release string) {
	u.Helper()
	u.describes("ct", release,
		"Percent: 100 Total Replica Count: 6",
		"Achieved Percent: 0 Available Replicas: 0",
		"Status: True Type: Operational",
		`Message: 6/6: 6x"test-nginx" containers with [ImagePullBackOff]`,
		"Reason: PodsNotReady Status: False Type: Ready",
		"Reason: ClustersNotReady Status: False Type: Ready",
		"Image: nginx:broken",
		`Message: Back-off pulling image "nginx:broken" Reason: ImagePullBackOff`,
	)
	ct := &shipper.CapacityTarget{}
	u.get(release, ct)
	if len(ct.Status.Clusters) != 1 {
		u.Fatalf("the status speaks of %d clusters, want 1", len(ct.Status.Clusters))
	}
	in := ct.Status.Clusters[0]
	if len(in.SadPods) != 5 {
		u.Errorf("%d sad pods are described, want 5 of the 6", len(in.SadPods))
	}
	for _, sad := range in.SadPods {
		if sad.Phase != corev1.PodPending || sad.Condition.Type != corev1.PodReady || sad.Condition.Status != corev1.ConditionFalse ||
			len(sad.Containers) != 1 || sad.Containers[0].State.Waiting == nil ||
			sad.Containers[0].State.Waiting.Message != `Back-off pulling image "nginx:broken"` {
			u.Errorf("sad pod %s: %+v", sad.Name, sad)
		}
	}
	if len(in.Reports) != 1 || in.Reports[0].Owner.Name != release+"-test-nginx" {
		u.Fatalf("reports: %+v", in.Reports)
	}
	sums := map[string]string{}
	for _, b := range in.Reports[0].Breakdown {
		for _, c := range b.Containers {
			for _, s := range c.States {
				sums[b.Type] += fmt.Sprintf("%s %s: %d pods, %s: %d %s %s", b.Status, b.Reason, b.Count, c.Name, s.Count, s.Type, s.Reason)
			}
		}
	}
	for _, condition := range []string{"Ready", "ContainersReady"} {
		want := "False ContainersNotReady: 6 pods, test-nginx: 6 Waiting ImagePullBackOff"
		if sums[condition] != want {
			u.Errorf("the report says of %s %q, want %q", condition, sums[condition], want)
		}
	}
}

// eventsTell looks for the events of the reference, each about the right object and with the right text.
func (u *user) eventsTell(good, bad, mended string) {
	u.Helper()
	key := u.Namespace + "/" + bad
	const sad = "6/6: 6x\"test-nginx\" containers with [ImagePullBackOff]"
	for _, want := range []struct{ kind, name, eventType, reason, note string }{
		{"Application", appName, "Normal", "ApplicationConditionChanged", fmt.Sprintf("Transitioning from %q to %q", good, bad)},
		{"Release", bad, "Normal", "ClustersSelected", fmt.Sprintf("Set clusters for %q to %s", key, west)},
		{"Release", bad, "Normal", "ReleaseScheduled", fmt.Sprintf("Created InstallationTarget %q", key)},
		{"Release", bad, "Normal", "ReleaseScheduled", fmt.Sprintf("Created CapacityTarget %q", key)},
		{"Release", bad, "Normal", "ReleaseScheduled", fmt.Sprintf("Created TrafficTarget %q", key)},
		{"Release", bad, "Normal", "ReleaseStateTransitioned",
			fmt.Sprintf(`Release %q had its state "WaitingForCapacity" transitioned to "True"`, key)},
		{"Release", bad, "Normal", "ReleaseConditionChanged", "[] -> [Scheduled True]"},
		{"CapacityTarget", bad, "Warning", shipper.PodsNotReady, `cluster "` + west + `": ` + sad},
		{"CapacityTarget", bad, "Normal", "CapacityTargetConditionChanged", "-> [Ready False ClustersNotReady " + west + ": PodsNotReady 6/6"},
		{"Release", mended, "Normal", "StrategyApplied", "step [1] finished"},
	} {
		what := fmt.Sprintf("%s %s about %s %s: …%s…", want.eventType, want.reason, want.kind, want.name, want.note)
		u.Eventually("the event "+what, "told", func() (string, error) {
			list := &eventsv1.EventList{}
			err := world.management.List(u.Ctx, list, client.InNamespace(u.Namespace))
			var seen []string
			for _, e := range list.Items {
				if len(e.Note) > maxNote || e.Note == "" {
					u.Fatalf("event %s has a note of %d bytes", e.Name, len(e.Note))
				}
				if e.Regarding.Kind != want.kind || e.Regarding.Name != want.name || e.Reason != want.reason {
					continue
				}
				if e.Type == want.eventType && strings.Contains(e.Note, want.note) {
					return "told", err
				}
				seen = append(seen, e.Note)
			}
			slices.Sort(seen)
			return cmp.Or(strings.Join(seen, "\n"), "nothing of the kind"), err
		})
	}
}
