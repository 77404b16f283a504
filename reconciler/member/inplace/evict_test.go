// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rules "shipper.dev/shipper/apis/rules/inplace"
)

// podsOf makes Pods db-0, db-1, … of revisions. A revision in upper case is of a Pod that is not ready.
func podsOf(revisions string) (out []corev1.Pod) {
	for i, r := range revisions {
		ready := corev1.ConditionTrue
		if r >= 'A' && r <= 'Z' {
			ready, r = corev1.ConditionFalse, r-'A'+'a'
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("db-", i), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: string(r)},
		}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		out = append(out, pod)
	}
	return out
}

func TestTheNextPodToEvict(t *testing.T) {
	quarter := rules.GoalOf(&rules.Set{Replicas: 4}, rules.Set{Replicas: 4}, 25)
	half := rules.GoalOf(&rules.Set{Replicas: 4}, rules.Set{Replicas: 4}, 50)
	whole := rules.GoalOf(nil, rules.Set{Replicas: 4}, 100)
	tests := map[string]struct {
		goal            rules.Goal
		update, current string
		pods, want      string
	}{
		"one too many of the contender":                     {quarter, "b", "a", "aabb", "db-2"},
		"it was evicted":                                    {quarter, "b", "a", "aaAb", ""},
		"another is not ready":                              {quarter, "b", "a", "Aabb", ""},
		"the one that is too many is not ready":             {quarter, "b", "a", "aaBb", "db-2"},
		"all are right":                                     {quarter, "b", "a", "aaab", ""},
		"a third Release's Pod is below":                    {quarter, "c", "a", "aabc", "db-2"},
		"two are too many":                                  {quarter, "b", "a", "abbb", "db-1"},
		"the incumbent's template is above":                 {half.Inverted(), "a", "b", "baaa", "db-1"},
		"all is the contender's":                            {whole, "b", "a", "aabb", ""},
		"a Pod of the template before stops the controller": {whole, "b", "a", "aAbb", "db-1"},
		"a Pod of the new template is not ready":            {whole, "b", "a", "aaaB", ""},
		"a Pod below the chart's own partition is not ready": {
			rules.GoalOf(nil, rules.Set{Replicas: 4, Partition: 2}, 100), "b", "a", "Aabb", "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
			set.Status.UpdateRevision, set.Status.CurrentRevision = tc.update, tc.current
			got := ""
			if pod, _ := next(tc.goal, set, podsOf(tc.pods), time.Unix(1e9, 0)); pod != nil {
				got = pod.Name
			}
			if got != tc.want {
				t.Errorf("evicts %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPodsThatLeaveAreCountedUntilTheStatusLacksThem(t *testing.T) {
	deleted := podsOf("aabb")
	deleted[2].DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	tests := map[string]struct {
		update                   string
		total, updated, previous int32
		pods                     []corev1.Pod
		want                     int32
	}{
		"all stay":                                  {"b", 4, 2, 2, podsOf("aabb"), 0},
		"one is being deleted":                      {"b", 4, 1, 2, deleted, 1},
		"it is gone, and the status is late":        {"b", 4, 1, 2, podsOf("aab"), 1},
		"another is made, and the status is late":   {"b", 4, 1, 2, podsOf("aaAb"), 1},
		"the status has followed":                   {"b", 4, 1, 3, podsOf("aaab"), 0},
		"a Pod of a third template stays":           {"c", 4, 1, 2, podsOf("aabc"), 0},
		"both templates are the same":               {"a", 4, 4, 4, podsOf("aaaa"), 0},
		"both are the same, and a Pod is deleted":   {"a", 4, 3, 3, podsOf("aaa"), 1},
		"a Pod is missing that was never different": {"b", 3, 1, 2, podsOf("aab"), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
			set.Status = appsv1.StatefulSetStatus{
				UpdateRevision: tc.update, CurrentRevision: "a",
				Replicas: tc.total, UpdatedReplicas: tc.updated, CurrentReplicas: tc.previous,
			}
			if got := leavingOf(set, tc.pods); got != tc.want {
				t.Errorf("%d are leaving, want %d", got, tc.want)
			}
		})
	}
}

func TestOrdinalsStartAnywhere(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
	if i, ok := ordinal(set, "db-7"); i != 2 || !ok {
		t.Errorf("db-7 has index %d, %t", i, ok)
	}
	for _, other := range []string{"db", "db-x", "cache-1"} {
		if _, ok := ordinal(set, other); ok {
			t.Errorf("%s has an index", other)
		}
	}
}

func TestAPodThatIsNotReadyForAMomentIsNotEvicted(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Status: appsv1.StatefulSetStatus{UpdateRevision: "b"}}
	pods := podsOf("AaaB")
	since := time.Unix(1e9, 0)
	for i := range pods {
		pods[i].Status.Conditions[0].LastTransitionTime = metav1.NewTime(since)
	}
	goal := rules.Goal{Set: rules.Set{Replicas: 4}, Contender: true}
	if pod, waits := next(goal, set, pods, since.Add(brokenAfter-time.Second)); pod != nil || waits != "db-0" {
		t.Errorf("before its time: evicts %v, waits for %q", pod, waits)
	}
	if pod, waits := next(goal, set, pods, since.Add(brokenAfter)); pod == nil || pod.Name != "db-0" || waits != "" {
		t.Errorf("in time: evicts %v, waits for %q", pod, waits)
	}
}
