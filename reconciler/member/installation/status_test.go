// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

var then, now = metav1.Unix(1000, 0), metav1.Unix(2000, 0)

func condition(kind string, status corev1.ConditionStatus, reason, message string, at metav1.Time) shipper.Condition {
	return shipper.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
}

func good(at metav1.Time) []shipper.Condition {
	return []shipper.Condition{condition("Operational", "True", "", "", at), condition("Ready", "True", "", "", at)}
}

func TestStatus(t *testing.T) {
	before := shipper.InstallationTargetStatus{
		ObservedGeneration: 1, Conditions: good(then),
		Clusters: []shipper.ClusterInstallationStatus{{Name: "east", Status: "Installed", Conditions: good(then)}},
	}
	lost := &fleet.Error{Cluster: "east", Reason: shipper.ClusterUnreachable, Message: "no answer"}
	connecting := &fleet.Error{Cluster: "east", Reason: shipper.TargetClusterClientError, Pending: true}
	untried := &fleet.Error{Cluster: "east", Reason: shipper.CredentialsRefused, Message: "too few rights", Untried: true}
	type clusters = []shipper.ClusterInstallationStatus
	failed := func(status, reason, message string, operational shipper.Condition) clusters {
		return clusters{{Name: "east", Status: status, Message: message, Conditions: []shipper.Condition{
			operational, condition("Ready", "False", reason, message, now),
		}}}
	}
	fine := condition("Operational", "True", "", "", then)
	notReady := func(message string) []shipper.Condition {
		return []shipper.Condition{fine, condition("Ready", "False", "ClustersNotReady", message, now)}
	}
	tests := map[string]struct {
		outcomes []Outcome
		general  error
		want     shipper.InstallationTargetStatus
	}{
		"installed everywhere": {
			[]Outcome{{cluster: "west"}, {cluster: "east"}}, nil,
			shipper.InstallationTargetStatus{ObservedGeneration: 2, Conditions: good(then), Clusters: clusters{
				{Name: "east", Status: "Installed", Conditions: good(then)},
				{Name: "west", Status: "Installed", Conditions: good(now)},
			}},
		},
		"a cluster that was left is forgotten": {
			[]Outcome{{cluster: "east", leaving: true}}, nil,
			shipper.InstallationTargetStatus{ObservedGeneration: 2, Conditions: good(then)},
		},
		"a cluster that is being left does not keep a target from being ready": {
			[]Outcome{{cluster: "east", leaving: true, err: waiting("still there")}}, nil,
			shipper.InstallationTargetStatus{
				ObservedGeneration: 2, Conditions: good(then), Clusters: failed("", "InProgress", "still there", fine),
			},
		},
		"a cluster that was forgotten is not named again while Shipper connects to it": {
			[]Outcome{{cluster: "west", leaving: true, err: connecting}, {cluster: "east", err: connecting}}, nil, before,
		},
		"a conflict": {
			[]Outcome{{cluster: "east", err: conflict("it is theirs")}}, nil,
			shipper.InstallationTargetStatus{
				ObservedGeneration: 2, Clusters: failed("Failed", "ObjectConflict", "it is theirs", fine),
				Conditions: notReady("east: ObjectConflict it is theirs"),
			},
		},
		"a chart that is broken": {
			[]Outcome{{
				cluster: "east", err: ofChart(&chart.Error{Reason: shipper.BrokenChartSpec, Message: "no such chart"}),
			}}, nil,
			shipper.InstallationTargetStatus{
				ObservedGeneration: 2, Clusters: failed("Failed", "BrokenChartSpec", "no such chart", fine),
				Conditions: notReady("east: BrokenChartSpec no such chart"),
			},
		},
		"what is installed in a cluster that is lost is still said to be": {
			[]Outcome{{cluster: "east", err: lost}}, nil,
			shipper.InstallationTargetStatus{
				ObservedGeneration: 2,
				Clusters: clusters{{Name: "east", Status: "Installed", Message: "no answer", Conditions: []shipper.Condition{
					condition("Operational", "False", "ClusterUnreachable", "no answer", now),
					condition("Ready", "Unknown", "ClusterUnreachable", "no answer", now),
				}}},
				Conditions: []shipper.Condition{
					condition("Operational", "False", "ClustersNotOperational", "east: ClusterUnreachable no answer", now),
					condition("Ready", "False", "ClustersNotReady", "east: ClusterUnreachable no answer", now),
				},
			},
		},
		"while a cluster is being connected to nothing is known to have changed": {
			[]Outcome{{cluster: "east", err: connecting}}, nil, before,
		},
		"a cluster that this installation has no credentials for yet is as another installation left it": {
			[]Outcome{{cluster: "east", err: untried}}, nil, before,
		},
		"an error that concerns no cluster": {
			nil, broken("no chart"),
			shipper.InstallationTargetStatus{
				ObservedGeneration: 1, Clusters: before.Clusters, Conditions: []shipper.Condition{
					condition("Operational", "False", "ChartError", "no chart", now), condition("Ready", "True", "", "", then),
				},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: *before.DeepCopy()}
			if diff := cmp.Diff(tc.want, status(it, tc.outcomes, tc.general, time.Unix(2000, 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, it.Status); diff != "" {
				t.Errorf("the argument was modified: -want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsKnownOfAChartStandsWhileItIsTriedAgain(t *testing.T) {
	with := func(reason, message string) shipper.InstallationTarget {
		it := shipper.InstallationTarget{Status: shipper.InstallationTargetStatus{ObservedGeneration: 1}}
		it.Generation = 2
		if reason != "" {
			it.Status.Clusters = []shipper.ClusterInstallationStatus{{Name: "east", Message: message, Conditions: []shipper.Condition{
				condition("Operational", "True", "", "", then), condition("Ready", "False", reason, message, then),
			}}}
		}
		return it
	}
	for sentence, tc := range map[string]struct {
		before     shipper.InstallationTarget
		message    string
		generation int64
	}{
		"nothing is known":       {with("", ""), errLoading.Error(), 2},
		"something was awaited":  {with("InProgress", "a hook"), errLoading.Error(), 2},
		"it could not be had":    {with("ChartFetchFailure", "no answer"), "no answer", 1},
		"another chart was bad":  {with("ChartError", "no such chart"), "no such chart", 1},
		"something was not ours": {with("ObjectConflict", "it is theirs"), "it is theirs", 1},
	} {
		got := status(&tc.before, []Outcome{{cluster: "east", err: errLoading}}, nil, now.Time)
		if message := got.Clusters[0].Message; message != tc.message || got.ObservedGeneration != tc.generation {
			t.Errorf("%s: it says %q of generation %d", sentence, message, got.ObservedGeneration)
		}
	}
}

func TestErrorsKnowTheirRemedy(t *testing.T) {
	type judgement struct {
		Reason string
		Remedy retry.Action
	}
	tests := map[string]struct {
		err  error
		want judgement
	}{
		"a chart that may be fetched later": {
			ofChart(&chart.Error{Reason: shipper.ChartFetchFailure, Retry: true}),
			judgement{shipper.ChartFetchFailure, retry.Retry},
		},
		"a chart that breaks a rule": {
			ofChart(&chart.Error{Reason: shipper.ChartError}), judgement{shipper.ChartError, retry.Wait},
		},
		"an unknown error of the chart room": {ofChart(errors.New("x")), judgement{shipper.InternalError, retry.Retry}},
		"a conflict":                         {conflict("x"), judgement{shipper.ObjectConflict, retry.Retry}},
		"something that goes by itself":      {waiting("x"), judgement{shipper.InProgress, retry.Recheck}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got judgement
			got.Reason, got.Remedy = retry.ClassifyInCluster(tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClusterNames(t *testing.T) {
	it := &shipper.InstallationTarget{
		Spec:   shipper.InstallationTargetSpec{Clusters: []string{"c", "a"}},
		Status: shipper.InstallationTargetStatus{Clusters: []shipper.ClusterInstallationStatus{{Name: "b"}, {Name: "a"}}},
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, Clusters(it)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var names []string
	for _, c := range withClusters(it.Status.Clusters, it.Spec.Clusters) {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHasteOf is about statuses that may lag: they say nothing but how far objects are.
func TestHasteOf(t *testing.T) {
	with := func(objects *shipper.InstalledObjects, status string) shipper.InstallationTargetStatus {
		return shipper.InstallationTargetStatus{ObservedGeneration: 1, Conditions: good(then), Clusters: []shipper.ClusterInstallationStatus{
			{Name: "east", Status: status, Conditions: good(then), Objects: objects},
		}}
	}
	is := func(healths ...string) *shipper.InstalledObjects {
		out := &shipper.InstalledObjects{Total: 2, Healthy: 2 - int32(len(healths))}
		for _, h := range healths {
			out.Unhealthy = append(out.Unhealthy, shipper.UnhealthyObject{Status: h})
		}
		return out
	}
	healthy := with(is(), "Installed")
	told := with(is(), "Installed")
	told.ObservedGeneration = 2
	type cases = map[string]struct {
		was, is shipper.InstallationTargetStatus
		want    bool
	}
	newest := cases{
		"the generation is observed":            {healthy, told, true},
		"one is in progress":                    {healthy, with(is("InProgress"), "Installed"), false},
		"it is healthy again":                   {with(is("InProgress"), "Installed"), healthy, true},
		"what has failed is in progress again":  {with(is("Failed"), "Installed"), with(is("InProgress"), "Installed"), false},
		"what has failed is healthy again":      {with(is("Failed"), "Installed"), healthy, true},
		"how they are is known":                 {with(nil, "Installed"), healthy, true},
		"one has failed":                        {healthy, with(is("Failed"), "Installed"), true},
		"one goes":                              {healthy, with(is("InProgress", "Terminating"), "Installed"), true},
		"nothing is known of them":              {healthy, with(nil, "Installed"), true},
		"something else is said of the cluster": {healthy, with(is("InProgress"), "Failed"), true},
	}
	older := cases{
		"another one is newer, and it is observed": {healthy, told, false},
		"it is healthy again":                      {with(is("InProgress"), "Installed"), healthy, false},
		"one has failed":                           {healthy, with(is("Failed"), "Installed"), true},
		"something else is said of the cluster":    {healthy, with(is(), "Failed"), true},
	}
	for isNewest, all := range map[bool]cases{true: newest, false: older} {
		for sentence, tc := range all {
			if got := statusTurned(isNewest, tc.was, tc.is); got != tc.want {
				t.Errorf("newest: %t, %s: turned is %t", isNewest, sentence, got)
			}
		}
	}
}
