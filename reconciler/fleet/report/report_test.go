// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
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
	bad := []shipper.Condition{good[0], condition("Ready", "False", "InProgress", "")}
	got := ConditionEvents("TargetChanged", "ClusterChanged", nil, good,
		[]Cluster{{"a", good}, {"b", bad}}, []Cluster{{"a", good}, {"b", good}})
	want := []Event{
		{"Normal", "ClusterChanged", "UpdateStatus", `cluster "b": [Ready False InProgress] -> [Ready True]`},
		{"Normal", "TargetChanged", "UpdateStatus", "[] -> [Operational True], [] -> [Ready True]"},
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
		t.Errorf("how far it is in a cluster was told: %v", got)
	}
	recorder := events.NewFakeRecorder(2)
	Emit(recorder, &shipper.CapacityTarget{}, got[1:])
	if event := <-recorder.Events; event != "Normal TargetChanged [] -> [Operational True], [] -> [Ready True]" {
		t.Errorf("emitted %q", event)
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
		"Told by Tell: " + long("much") + "; most", "Told by Tell 2: " + long("more"),
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
	err := fmt.Errorf("writing: %w", fmt.Errorf("it broke"))
	want := []shipper.Condition{good[0], condition("Ready", "False", "InternalError", "writing: it broke")}
	if diff := cmp.Diff(want, Failed(good, err, metav1.Unix(1, 0))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
