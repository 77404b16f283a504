// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWorkloadsAreShownWorstFirst(t *testing.T) {
	const several = `[{"kind":"Deployment","name":"cart","replicas":2},{"kind":"Deployment","name":"web","replicas":2},` +
		`{"kind":"StatefulSet","name":"db","inPlace":true,"replicas":1}]`
	steps := []shipper.RolloutStrategyStep{
		{Name: "staging", Capacity: shipper.RolloutStrategyStepValue{Contender: 1}},
		{Name: "full on", Capacity: shipper.RolloutStrategyStepValue{Contender: 100}},
	}
	cart, web := "Deployment cart: side by side from step 0 (staging) on", "Deployment web: side by side from step 0 (staging) on"
	db := "StatefulSet db: in place from step 0 (staging) on, all of it at step 1 (full on)"
	reports := []shipper.ClusterCapacityReport{
		{Owner: shipper.ClusterCapacityReportOwner{Name: "web-1"}}, {Owner: shipper.ClusterCapacityReportOwner{Name: "db"}},
	}
	for sentence, tc := range map[string]struct {
		annotation string
		ready      corev1.ConditionStatus
		want       []string
	}{
		"all ready":                    {several, corev1.ConditionTrue, []string{cart, web, db}},
		"some Pods are missing":        {several, corev1.ConditionFalse, []string{web, db, cart}},
		"a Deployment alone":           {`[{"kind":"Deployment","name":"web","replicas":2}]`, corev1.ConditionTrue, nil},
		"a StatefulSet alone":          {`[{"kind":"StatefulSet","name":"db","inPlace":true,"replicas":1}]`, corev1.ConditionTrue, []string{db}},
		"a Release by Release":         {"", corev1.ConditionTrue, nil},
		"an annotation that is broken": {"{", corev1.ConditionTrue, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := exampleObserved()
			newest := o.releases[len(o.releases)-1]
			newest.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: steps}
			ct := o.capacity[newest.Name]
			ct.Annotations = map[string]string{shipper.WorkloadsAnnotation: tc.annotation}
			ct.Status.Clusters[1].Reports = reports
			ct.Status.Clusters[1].Conditions = []shipper.Condition{{Type: shipper.TargetReady, Status: tc.ready}}
			view := viewOf(o, now)
			if got := view.workloads(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			lines, screen := view.Lines(now), view.Screen(100, now)
			for _, text := range tc.want {
				if !strings.Contains(lines, "workload: "+text+"\n") || !strings.Contains(screen, text) {
					t.Errorf("%q is not in\n%s\nor not in\n%s", text, lines, screen)
				}
			}
		})
	}
}
