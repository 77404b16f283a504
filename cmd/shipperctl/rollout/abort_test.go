// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

const kept = `being deleted; kept in clusters [eu us] until Release "web-0" is at its step there and has traffic`

// aborting is scene after the deletion of its newest Release, which Shipper keeps.
func aborting() *observed {
	o := exampleObserved()
	rel := o.releases[1]
	at := metav1.NewTime(now)
	rel.DeletionTimestamp, rel.UID = &at, "web-1"
	rel.Status.Conditions = []shipper.Condition{
		{Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyInProgress, Message: kept},
	}
	o.releases, o.deleting = cli.SplitDeleting(o.app, o.releases)
	return o
}

func TestADeletedReleaseIsNotTheNewest(t *testing.T) {
	p := viewOf(aborting(), now)
	if p.Release != "web-0" || !p.Complete {
		t.Errorf("release %s, complete %t; want web-0, complete", p.Release, p.Complete)
	}
	if diff := cmp.Diff([]string{"web-1: " + kept}, p.Deleting); diff != "" {
		t.Errorf("deleting (-want +got):\n%s", diff)
	}
	if p.over() {
		t.Error("the rollout is over while a deleted release still serves")
	}
	for name, text := range map[string]string{
		"lines": p.Lines(now), "row": p.stateText(), "screen": strings.Join(strings.Fields(p.Screen(200, now)), " "),
	} {
		if !strings.Contains(text, "web-1: being deleted; kept in clusters [eu us]") {
			t.Errorf("the %s do not say that web-1 is being deleted:\n%s", name, text)
		}
	}
}

func TestAnAbortThatIsRepeatedDeletesNoMore(t *testing.T) {
	o := exampleObserved()
	incumbent, contender := o.releases[0], o.releases[1]
	got := func(rels, deleting []*shipper.Release) string {
		rel, err := toAbort(o.app, rels, deleting)
		if err != nil {
			return err.Error()
		}
		return rel.Name
	}
	for sentence, tc := range map[string]struct{ got, want string }{
		"the contender is aborted": {got(o.releases, nil), contender.Name},
		"the complete incumbent is not": {
			got([]*shipper.Release{incumbent, incumbent}, nil),
			"release web-0 is complete, nothing is being rolled out: to go back to an earlier one there is `shipperctl rollout rollback`",
		},
		"one that was deleted and is kept is found again": {got(o.releases[:1], o.releases[1:]), contender.Name},
		"an older one that is being deleted is not": {
			got(o.releases[1:], o.releases[:1]),
			"release web-1 is the only one: it would be made again; to take everything away, delete the application",
		},
		"there is nothing to abort": {
			got(nil, nil), "application shop/web has no release yet: `shipperctl rollout status` says why",
		},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestAnAbortIsOverWhenTheIncumbentServes(t *testing.T) {
	o := aborting()
	given := o.deleting[0]
	check := func(sentence, want string, over bool) {
		t.Helper()
		text, got, err := abortProgress(o, given, now)
		if err != nil || text != want || got != over {
			t.Errorf("%s: %q, over %t, %v; want %q, over %t", sentence, text, got, err, want, over)
		}
	}
	check("while it is kept", "release web-1 is "+kept, false)
	o.releases, o.deleting = []*shipper.Release{o.releases[0], given}, nil
	check("before the deletion is observed", "release web-1 is being deleted", false)
	o.releases = o.releases[:1]
	incumbent := o.releases[0]
	incumbent.Spec.TargetStep = 2
	conditions := incumbent.Status.Conditions
	incumbent.Status.Conditions = nil
	check("while the incumbent is not complete", "release web-1 is removed; the rollout waits for clusters to be chosen", false)
	incumbent.Status.Conditions, incumbent.Status.AchievedStep = conditions, &shipper.AchievedStep{Step: 2, Name: "full on"}
	check("when the incumbent serves", "release web-1 is removed, web-0 serves in its place", true)
	o.traffic = nil
	check("when it has no traffic", "release web-1 is removed, web-0 is at its step again, without traffic", true)
	o.releases, o.traffic = []*shipper.Release{o.releases[0], failedAt(incumbent)}, exampleObserved().traffic
	delete(o.traffic, "web-1")
	check("when it has failed, too",
		"release web-1 is removed, web-2 (which has failed, too) is at its step again, without traffic; web-0 serves", true)
}

// failedAt is a copy of a Release that has failed and went back to its first step.
func failedAt(rel *shipper.Release) *shipper.Release {
	rel = rel.DeepCopy()
	rel.Name, rel.UID, rel.Spec.TargetStep, rel.Status.AchievedStep = "web-2", "web-2", 0, &shipper.AchievedStep{Name: "staging"}
	rel.Annotations[shipper.ReleaseGenerationAnnotation] = "2"
	rel.Status.Strategy = &shipper.ReleaseStrategyStatus{}
	rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseFailed, Status: corev1.ConditionTrue, Reason: shipper.CheckFailed}}
	return rel
}
