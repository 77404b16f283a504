// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// joined is a Cluster that is ready, with labels.
func joined(name string, labels map[string]string, taints ...shipper.ClusterTaint) shipper.Cluster {
	return shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       shipper.ClusterSpec{Region: "eu", Taints: taints},
		Status:     shipper.ClusterStatus{Conditions: []shipper.Condition{{Type: shipper.ClusterReady, Status: corev1.ConditionTrue}}},
	}
}

// chosen are the clusters that the placement of an Application chooses.
func chosen(t *testing.T, app *shipper.Application, clusters ...shipper.Cluster) []string {
	t.Helper()
	decision, err := placement.Select(placement.Input{
		App: app.Name, Requirements: app.Spec.Template.ClusterRequirements, Clusters: clusters, UnhealthyAfter: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return decision.Chosen
}

func TestAPlacementWithExternalPlacesNothingUntilClustersAreLabelled(t *testing.T) {
	edge := map[string]string{"tier": "edge"}
	started := func(labels map[string]string) map[string]string {
		out := map[string]string{"run.work/work": "started"}
		for key, value := range labels {
			out[key] = value
		}
		return out
	}
	gpu := shipper.ClusterTaint{Key: "gpu", Effect: shipper.TaintNoSchedule}
	for sentence, c := range map[string]struct {
		policy string
		want   []string
	}{
		"all clusters": {"", []string{"a", "b"}},
		"clusters of one of two terms": {`policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {` +
			`clusterSelectorTerms: [{labelSelector: {matchLabels: {tier: edge}}}, {labelSelector: {matchLabels: {tier: core}}}]}}}},`,
			[]string{"a"}},
		"a number of clusters":                  {"policy: {placementType: PickN, numberOfClusters: 2},", []string{"a", "b"}},
		"named clusters, whatever their taints": {"policy: {placementType: PickFixed, clusterNames: [a, c]},", []string{"a", "c"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			app, reviews := convertedPlacement(t, placementWith(c.policy+" strategy: {type: External}"))
			if got := chosen(t, app, joined("a", edge), joined("b", nil), joined("c", nil, gpu)); len(got) > 0 {
				t.Errorf("before a run, it is placed on %q", got)
			}
			got := chosen(t, app, joined("a", started(edge)), joined("b", started(nil)), joined("c", started(nil), gpu))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("clusters after all are labelled (-want +got):\n%s", diff)
			}
			if got := chosen(t, app, joined("a", started(edge)), joined("b", nil), joined("c", nil, gpu)); !cmp.Equal(got, []string{"a"}) {
				t.Errorf("after a is labelled it is placed on %q", got)
			}
			begin := "kubectl label clusters.shipper.booking.com --all run.work/work=started"
			if got := strings.Join(reviews, "\n"); !strings.Contains(got, begin) {
				t.Errorf("no review has the command %s:\n%s", begin, got)
			}
			if app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh {
				t.Errorf("later changes are taken by themselves: follow is %q", app.Spec.Template.Resources.Follow)
			}
		})
	}
}

// TestOneRunDoesNotBeginAnother has two Applications of the same name.
func TestOneRunDoesNotBeginAnother(t *testing.T) {
	first, _ := convertedPlacement(t, placementWith("strategy: {type: external}"))
	second := first.DeepCopy()
	second.Namespace = "other"
	if startLabel(first) == startLabel(second) {
		t.Errorf("both begin by the label %s", startLabel(first))
	}
	if got := chosen(t, first, joined("a", map[string]string{startLabel(second): "started"})); len(got) > 0 {
		t.Errorf("it is placed on %q", got)
	}
}
