// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestHealthySumsUpClusters(t *testing.T) {
	objects := func(total, healthy int32, status string, names ...string) *shipper.InstalledObjects {
		out := &shipper.InstalledObjects{Total: total, Healthy: healthy}
		for _, name := range names {
			out.Unhealthy = append(out.Unhealthy, shipper.UnhealthyObject{Kind: "Thing", Name: name, Status: status, Reason: "Why"})
		}
		return out
	}
	condition := func(status corev1.ConditionStatus, reason, message string) *shipper.Condition {
		return &shipper.Condition{Type: shipper.ReleaseHealthy, Status: status, Reason: reason, Message: message}
	}
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprint(i))
	}
	for sentence, tc := range map[string]struct {
		clusters map[string]*shipper.InstalledObjects
		want     *shipper.Condition
	}{
		"no cluster":       {nil, nil},
		"nothing is known": {map[string]*shipper.InstalledObjects{"a": nil, "b": nil}, nil},
		"all is well": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 2, ""), "b": objects(2, 2, "")}, condition("True", "", ""),
		},
		"one cluster has not reported yet": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 2, ""), "b": nil},
			condition("Unknown", "ObjectsNotKnown", "nothing is known yet of objects in clusters: b"),
		},
		"one object is not well": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 2, ""), "b": objects(2, 1, "Failed", "x")},
			condition("False", "ObjectsNotHealthy", `1 of 4 objects are not healthy: b: Thing "x" is Failed (Why)`),
		},
		"one cannot be judged": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 1, "Unknown", "x")},
			condition("Unknown", "ObjectsNotHealthy", `1 of 2 objects are not healthy: a: Thing "x" is Unknown (Why)`),
		},
		"one failed, and another is on its way": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 1, "InProgress", "x"), "b": objects(2, 1, "Failed", "y")},
			condition("False", "ObjectsNotHealthy", `2 of 4 objects are not healthy: b: Thing "y" is Failed (Why); `+
				`a: Thing "x" is InProgress (Why)`),
		},
		"one is on its way, and another cannot be judged": {
			map[string]*shipper.InstalledObjects{"a": objects(2, 1, "InProgress", "x"), "b": objects(2, 1, "Unknown", "y")},
			condition("False", "ObjectsInProgress", `2 of 4 objects are not healthy: b: Thing "y" is Unknown (Why); `+
				`a: Thing "x" is InProgress (Why)`),
		},
		"more than can be named": {
			map[string]*shipper.InstalledObjects{"a": objects(500, 100, "InProgress", many...)},
			condition("False", "ObjectsInProgress", `400 of 500 objects are not healthy: a: Thing "0" is InProgress (Why); `+
				`a: Thing "1" is InProgress (Why); a: Thing "2" is InProgress (Why); a: Thing "3" is InProgress (Why); `+
				`a: Thing "4" is InProgress (Why); and 395 more`),
		},
		"one of many has failed": {
			map[string]*shipper.InstalledObjects{"a": objects(10, 0, "InProgress", many...), "b": objects(1, 0, "Failed", "x")},
			condition("False", "ObjectsNotHealthy", `11 of 11 objects are not healthy: b: Thing "x" is Failed (Why); `+
				`a: Thing "0" is InProgress (Why); a: Thing "1" is InProgress (Why); a: Thing "2" is InProgress (Why); `+
				`a: Thing "3" is InProgress (Why); and 6 more`),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			it := &shipper.InstallationTarget{}
			for _, name := range []string{"a", "b"} {
				if o, there := tc.clusters[name]; there {
					it.Status.Clusters = append(it.Status.Clusters, shipper.ClusterInstallationStatus{Name: name, Objects: o})
				}
			}
			if diff := cmp.Diff(tc.want, healthy(strategy.Release{Release: &shipper.Release{}, Installation: it})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if c := healthy(strategy.Release{}); c != nil {
		t.Errorf("a Release without a target is %+v", c)
	}
}

// The order in which clusters get the next Release must not decide what the one before it says for ever.
func TestClustersOfTheNextReleaseDoNotBlurHealthy(t *testing.T) {
	superseded := []shipper.Condition{{Type: shipper.TargetReady, Status: corev1.ConditionTrue, Reason: shipper.SupersededByNewer}}
	there := &shipper.InstalledObjects{Total: 1, Healthy: 1}
	it := &shipper.InstallationTarget{Status: shipper.InstallationTargetStatus{Clusters: []shipper.ClusterInstallationStatus{
		{Name: "a", Conditions: superseded}, {Name: "b", Objects: there},
	}}}
	want := &shipper.Condition{Type: shipper.ReleaseHealthy, Status: corev1.ConditionTrue}
	if diff := cmp.Diff(want, healthy(strategy.Release{Release: &shipper.Release{}, Installation: it})); diff != "" {
		t.Errorf("one of two (-want +got):\n%s", diff)
	}
	it.Status.Clusters[1] = shipper.ClusterInstallationStatus{Name: "b", Conditions: superseded}
	if got := healthy(strategy.Release{Release: &shipper.Release{}, Installation: it}); got != nil {
		t.Errorf("both: %v", got)
	}
}

// The CapacityTarget says first that Pods are there, and completion follows from it: the InstallationTarget does not contradict it later.
func TestAWorkloadWithItsCapacityIsHealthy(t *testing.T) {
	deployment := func(name, status string) shipper.UnhealthyObject {
		return shipper.UnhealthyObject{APIVersion: "apps/v1", Kind: "Deployment", Name: name, Status: status, Reason: "LessAvailable"}
	}
	target := func(ready corev1.ConditionStatus, names ...string) *shipper.CapacityTarget {
		c := shipper.ClusterCapacityStatus{Name: "a", Conditions: []shipper.Condition{{Type: shipper.TargetReady, Status: ready}}}
		for _, name := range names {
			c.Reports = append(c.Reports, shipper.ClusterCapacityReport{Owner: shipper.ClusterCapacityReportOwner{Name: name}})
		}
		out := &shipper.CapacityTarget{Status: shipper.CapacityTargetStatus{Clusters: []shipper.ClusterCapacityStatus{c}}}
		out.Generation, out.Status.ObservedGeneration = 2, 2
		return out
	}
	outdated := target("True", "web")
	outdated.Status.ObservedGeneration = 1
	var many []shipper.UnhealthyObject
	for i := range 10 {
		many = append(many, deployment(fmt.Sprint(i), "InProgress"))
	}
	names := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}
	progresses, failed := []shipper.UnhealthyObject{deployment("web", "InProgress")}, []shipper.UnhealthyObject{deployment("web", "Failed")}
	stateful := []shipper.UnhealthyObject{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Status: "InProgress"}}
	byRelease, byApplication := &shipper.Release{}, &shipper.Release{}
	byApplication.Spec.Environment.Chart.Naming = shipper.NamingByApplication
	job := []shipper.UnhealthyObject{{APIVersion: "batch/v1", Kind: "Job", Name: "web", Status: "InProgress"}}
	for sentence, tc := range map[string]struct {
		rel      *shipper.Release
		capacity *shipper.CapacityTarget
		bad      []shipper.UnhealthyObject
		kinds    []shipper.InstalledKind
		total    int32
		want     string
	}{
		"its capacity is achieved":             {byRelease, target("True", "web"), progresses, nil, 1, "True "},
		"its capacity is not achieved":         {byRelease, target("False", "web"), progresses, nil, 1, "False ObjectsInProgress"},
		"an earlier one was achieved":          {byRelease, outdated, progresses, nil, 1, "False ObjectsInProgress"},
		"there is no target":                   {byRelease, nil, progresses, nil, 1, "False ObjectsInProgress"},
		"another workload is counted":          {byRelease, target("True", "db"), progresses, nil, 1, "False ObjectsInProgress"},
		"it has failed":                        {byRelease, target("True", "web"), failed, nil, 1, "False ObjectsNotHealthy"},
		"it is no workload":                    {byRelease, target("True", "web"), job, nil, 1, "False ObjectsInProgress"},
		"one of another kind has its capacity": {byRelease, target("True", "web"), stateful, nil, 1, "False ObjectsInProgress"},
		"a StatefulSet has its capacity":       {byApplication, target("True", "web"), stateful, nil, 1, "True "},
		"there are more than are named": {
			byRelease, target("True", names...), many, []shipper.InstalledKind{{APIVersion: "apps/v1", Kind: "Deployment", Total: 12}}, 12,
			"True ",
		},
		"one that is not named is no workload": {
			byRelease, target("True", names...), many, []shipper.InstalledKind{{APIVersion: "apps/v1", Kind: "Deployment", Total: 11}}, 12,
			"Unknown ObjectsNotHealthy",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			it := &shipper.InstallationTarget{Status: shipper.InstallationTargetStatus{Clusters: []shipper.ClusterInstallationStatus{{
				Name: "a", Objects: &shipper.InstalledObjects{Total: tc.total, Kinds: tc.kinds, Unhealthy: tc.bad},
			}}}}
			c := healthy(strategy.Release{Release: tc.rel, Installation: it, Capacity: tc.capacity})
			if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != tc.want {
				t.Errorf("%q, want %q: %s", got, tc.want, c.Message)
			}
		})
	}
}
