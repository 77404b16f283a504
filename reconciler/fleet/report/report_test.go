// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func condition(kind string, status corev1.ConditionStatus, reason, message string) shipper.Condition {
	return shipper.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Unix(1, 0),
	}
}

var good = []shipper.Condition{condition("Operational", "True", "", ""), condition("Ready", "True", "", "")}

func TestOverall(t *testing.T) {
	bad := []shipper.Condition{
		condition("Operational", "False", "ClusterUnreachable", "no answer"),
		condition("Ready", "Unknown", "ClusterUnreachable", ""),
	}
	tests := map[string]struct {
		clusters []Cluster
		want     []shipper.Condition
	}{
		"nothing asked for": {nil, good},
		"all well":          {[]Cluster{{"a", good}, {"b", good}}, good},
		"what is wrong where, by name": {
			[]Cluster{{"c", bad}, {"b", good}, {"a", []shipper.Condition{condition("Operational", "True", "", "")}}},
			[]shipper.Condition{
				condition("Operational", "False", "ClustersNotOperational", "c: ClusterUnreachable no answer"),
				condition("Ready", "False", "ClustersNotReady", "a: not known yet; c: ClusterUnreachable"),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Overall(nil, tc.clusters, metav1.Unix(1, 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	moved := condition("Ready", "True", "", "")
	moved.LastTransitionTime = metav1.Unix(2, 0)
	tests := map[string]struct {
		before, after []shipper.Condition
		want          string
	}{
		"nothing":       {good, good, ""},
		"only the time": {good, []shipper.Condition{good[0], moved}, ""},
		"new ones":      {nil, good, "[] -> [Operational True], [] -> [Ready True]"},
		"one that is gone": {
			good, good[:1], "[Ready True] -> []",
		},
		"one that changed": {
			good, []shipper.Condition{good[0], condition("Ready", "False", "InProgress", "1 of 2")},
			"[Ready True] -> [Ready False InProgress 1 of 2]",
		},
		"how far it is": {
			[]shipper.Condition{condition("Ready", "False", "InProgress", "1 of 2")},
			[]shipper.Condition{condition("Ready", "False", "InProgress", "2 of 2")}, "",
		},
		"what else is wrong": {
			[]shipper.Condition{condition("Ready", "False", "PodsNotReady", "no image")},
			[]shipper.Condition{condition("Ready", "False", "PodsNotReady", "crashes")},
			"[Ready False PodsNotReady no image] -> [Ready False PodsNotReady crashes]",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Changes(tc.before, tc.after)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConditionEvents(t *testing.T) {
	bad := []shipper.Condition{good[0], condition("Ready", "False", "PodsNotReady", "")}
	sums := func(status corev1.ConditionStatus, reason, message string) []shipper.Condition {
		return []shipper.Condition{good[0], condition("Ready", status, reason, message)}
	}
	got := ConditionEvents("TargetChanged", "ClusterChanged", sums("False", "ClustersNotReady", "b: PodsNotReady"), good,
		[]Cluster{{"a", good}, {"b", bad}}, []Cluster{{"a", good}, {"b", good}})
	want := []Event{
		{"Normal", "ClusterChanged", "UpdateStatus", `cluster "b": [Ready False PodsNotReady] -> [Ready True]`},
		{"Normal", "TargetChanged", "UpdateStatus", "[Ready False ClustersNotReady b: PodsNotReady] -> [Ready True]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sum := func(message string) []shipper.Condition {
		return []shipper.Condition{condition("Ready", "False", "ClustersNotReady", message)}
	}
	underWay := func(message string) []Cluster {
		return []Cluster{{"a", []shipper.Condition{condition("Ready", "False", "InProgress", message)}}}
	}
	if got := ConditionEvents("TargetChanged", "ClusterChanged", sum("a: InProgress 1 of 2"), sum("a: InProgress 2 of 2"),
		underWay("1 of 2"), underWay("2 of 2")); got != nil {
		t.Errorf("the progress in a cluster was reported: %v", got)
	}
	recorder := events.NewFakeRecorder(2)
	Emit(recorder, &shipper.CapacityTarget{}, got[1:])
	if event := <-recorder.Events; event != "Normal "+want[1].Reason+" "+want[1].Note {
		t.Errorf("emitted %q", event)
	}
}

func TestWhatIsWorthAnEventOfATarget(t *testing.T) {
	ready := func(status corev1.ConditionStatus, reason, message string) *shipper.Condition {
		c := condition("Ready", status, reason, message)
		return &c
	}
	well, missing, starts := ready("True", "", ""), ready("False", "MissingDeployment", "found 0"), ready("False", "InProgress", "1 of 2")
	image, crash := ready("False", "PodsNotReady", "no image"), ready("False", "PodsNotReady", "crashes")
	lost := ready("Unknown", "ClusterUnreachable", "")
	const failed = "failed: "
	for sentence, tc := range map[string]struct {
		was, is *shipper.Condition
		want    string
	}{
		"it is made and well":                 {nil, well, ""},
		"it is made before there is anything": {nil, missing, ""},
		"there is something then":             {missing, well, ""},
		"what was there is gone":              {well, missing, failed + "found 0"},
		"more is asked for":                   {well, starts, ""},
		"it gets on":                          {starts, ready("False", "PodsNotInEndpoints", "1/2"), ""},
		"it is there":                         {ready("False", "PodsNotInEndpoints", "1/2"), well, ""},
		"Pods do not become ready":            {starts, image, failed + "no image"},
		"another reason for it":               {image, crash, failed + "crashes"},
		"they do":                             {image, well, "[Ready False PodsNotReady no image] -> [Ready True]"},
		"a cluster does not answer":           {well, lost, "[Ready True] -> [Ready Unknown ClusterUnreachable]"},
		"it answers again, and goes on":       {lost, starts, "[Ready Unknown ClusterUnreachable] -> [Ready False InProgress 1 of 2]"},
	} {
		list := func(c *shipper.Condition) []Cluster {
			if c == nil {
				return nil
			}
			return []Cluster{{"a", []shipper.Condition{*c}}}
		}
		var want []Event
		why, fails := strings.CutPrefix(tc.want, failed)
		switch {
		case fails:
			want = []Event{{"Warning", tc.is.Reason, "Set Ready=False", `cluster "a": ` + why}}
		case tc.want != "":
			want = []Event{{"Normal", "ClusterChanged", "UpdateStatus", `cluster "a": ` + tc.want}}
		}
		if diff := cmp.Diff(want, ConditionEvents("TargetChanged", "ClusterChanged", nil, nil, list(tc.was), list(tc.is))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
		// Of what sums up no clusters it is the same, but of what was asked for before there is anything.
		if own := tc.was != nil && !strings.Contains(tc.was.Reason+tc.is.Reason, "MissingDeployment"); own {
			want = nil
			switch {
			case fails:
				want = []Event{{"Warning", tc.is.Reason, "Set Ready=False", why}}
			case tc.want != "":
				want = []Event{{"Normal", "TargetChanged", "UpdateStatus", tc.want}}
			}
			got := ConditionEvents("TargetChanged", "ClusterChanged", []shipper.Condition{*tc.was}, []shipper.Condition{*tc.is}, nil, nil)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, itself: -want +got:\n%s", sentence, diff)
			}
		}
	}
}

func TestThatADeploymentIsThereIsToldWhenItWasGone(t *testing.T) {
	began := time.Unix(0, 0)
	said := func(status corev1.ConditionStatus, reason string, turned time.Duration) []Cluster {
		operational, ready := condition("Operational", "True", "", ""), condition("Ready", status, reason, "")
		operational.LastTransitionTime, ready.LastTransitionTime = metav1.NewTime(began), metav1.NewTime(began.Add(turned))
		return []Cluster{{"a", []shipper.Condition{operational, ready}}}
	}
	there := said("False", "InProgress", time.Hour)
	for sentence, tc := range map[string]struct {
		was  []Cluster
		want []Event
	}{
		"it was not made yet": {said("False", "MissingDeployment", 0), nil},
		"it was gone": {said("False", "MissingDeployment", time.Minute), []Event{
			{"Normal", "ClusterChanged", "UpdateStatus", `cluster "a": [Ready False MissingDeployment] -> [Ready False InProgress]`},
		}},
	} {
		if diff := cmp.Diff(tc.want, ConditionEvents("TargetChanged", "ClusterChanged", nil, nil, tc.was, there)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestWhatIsWellIsOneEvent(t *testing.T) {
	long := strings.Repeat("m", maxNote-10)
	got := AsOne([]Event{
		{"Warning", "Held", "Hold", "by a"}, {"Normal", "Achieved", "Achieve", "a step"}, {"Normal", "Moved", "Move", "on"},
		{"Normal", "Changed", "Change", long}, {"Normal", "Turned", "Turn", "round"},
	})
	want := []Event{
		{"Warning", "Held", "Hold", "by a"}, {"Normal", "Achieved", "Achieve, Move, Turn", "a step; on; round"},
		{"Normal", "Changed", "Change", long},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// actions is a recorder that notes actions.
type actions []string

// Eventf is events.EventRecorder.
func (a *actions) Eventf(_ runtime.Object, _ runtime.Object, _, reason, action, note string, args ...any) {
	*a = append(*a, reason+" by "+action+": "+fmt.Sprintf(note, args...))
}

func TestEventsOfOneMomentAreToldTogether(t *testing.T) {
	long := func(text string) string { return strings.Repeat(text, maxNote/2/len(text)) }
	var got actions
	Emit(&got, &shipper.CapacityTarget{}, []Event{
		{"Normal", "Changed", "Update", "east"}, {"Warning", "Changed", "Update", "hot"}, {"Normal", "Made", "Make A", "a"},
		{"Normal", "Changed", "Update", "west"}, {"Normal", "Made", "Make B", "b"},
		{"Normal", "Told", "Tell", long("much")}, {"Normal", "Told", "Tell", long("more")}, {"Normal", "Told", "Tell", "most"},
	})
	want := actions{
		"Changed by Update: east; west", "Changed by Update: hot", "Made by Make A, Make B: a; b",
		"Told by Tell: " + long("much") + "; most", "Told by Tell: " + long("more"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShorten(t *testing.T) {
	if got := Shorten("short", 5); got != "short" {
		t.Errorf("got %q", got)
	}
	got := Shorten(strings.Repeat("ü", 100), 50)
	if len(got) > 50 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ü…") {
		t.Errorf("got %q of %d bytes", got, len(got))
	}
}

func TestFailed(t *testing.T) {
	conflict := apierrors.NewConflict(shipper.Resource("pods"), "x", errors.New("changed"))
	denied := apierrors.NewForbidden(shipper.Resource("pods"), "x", errors.New("no"))
	const changed = `Operation cannot be fulfilled on pods.shipper.booking.com "x": changed`
	long := strings.Repeat("x", 8<<20)
	down := condition("Operational", "False", "ClusterUnreachable", "no answer")
	for sentence, tc := range map[string]struct {
		err  error
		want []shipper.Condition
	}{
		"an error": {
			fmt.Errorf("writing: %w", fmt.Errorf("it broke")),
			[]shipper.Condition{good[0], condition("Ready", "False", "InternalError", "writing: it broke")},
		},
		"a message of megabytes": {
			errors.New(long), []shipper.Condition{good[0], condition("Ready", "False", "InternalError", long[:1021]+"…")},
		},
		"of a connection, too": {
			&fleet.Error{Reason: shipper.CredentialsRefused, Message: long},
			[]shipper.Condition{
				condition("Operational", "False", "CredentialsRefused", long[:1021]+"…"),
				condition("Ready", "Unknown", "CredentialsRefused", long[:1021]+"…"),
			},
		},
		"a conflict is no failure": {
			conflict, []shipper.Condition{good[0], condition("Ready", "Unknown", "InProgress", changed)},
		},
		"a refusal that is joined with a conflict is one": {
			errors.Join(conflict, denied),
			[]shipper.Condition{good[0], condition("Ready", "False", "InternalError", changed+"; "+denied.Error())},
		},
		"a cluster that is lost": {
			&fleet.Error{Reason: shipper.ClusterUnreachable, Message: "no answer"},
			[]shipper.Condition{down, condition("Ready", "Unknown", "ClusterUnreachable", "no answer")},
		},
	} {
		got := Failed(good, tc.err, metav1.Unix(1, 0))
		if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(shipper.Condition{}, "LastTransitionTime")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestATargetIsUnknownWhereNothingIsWrongButConflicts(t *testing.T) {
	conflict := []shipper.Condition{good[0], condition("Ready", "Unknown", "InProgress", "changed")}
	failed := []shipper.Condition{good[0], condition("Ready", "False", "InProgress", "soon")}
	for sentence, tc := range map[string]struct {
		clusters []Cluster
		want     shipper.Condition
	}{
		"a conflict in one": {
			[]Cluster{{"a", good}, {"b", conflict}}, condition("Ready", "Unknown", "ClustersNotReady", "b: InProgress changed"),
		},
		"a conflict in one, and another is not ready": {
			[]Cluster{{"a", failed}, {"b", conflict}},
			condition("Ready", "False", "ClustersNotReady", "a: InProgress soon; b: InProgress changed"),
		},
		"a conflict in one, and another is not known yet": {
			[]Cluster{{"a", nil}, {"b", conflict}},
			condition("Ready", "False", "ClustersNotReady", "a: not known yet; b: InProgress changed"),
		},
	} {
		got := Overall(good, tc.clusters, metav1.Unix(1, 0))
		tc.want.LastTransitionTime = metav1.Unix(1, 0)
		if diff := cmp.Diff(&tc.want, shipper.FindCondition(got, shipper.TargetReady)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestAMessageOverAllClustersEndsWhereAClauseDoes(t *testing.T) {
	long := func(message string) string {
		got := Overall(nil, []Cluster{{Name: "eu", Conditions: []shipper.Condition{
			condition("Operational", "True", "", ""), condition("Ready", "False", "NotGranted", message),
		}}}, metav1.Unix(1, 0))
		return shipper.FindCondition(got, shipper.TargetReady).Message
	}
	command := "kubectl create clusterrole " + strings.Repeat("x", 300)
	for message, want := range map[string]string{
		"no right to namespaces; " + command: "eu: NotGranted no right to namespaces; …",
		strings.Repeat("x", 400):             "eu: NotGranted " + strings.Repeat("x", 286) + "…",
	} {
		if diff := cmp.Diff(want, long(message)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
