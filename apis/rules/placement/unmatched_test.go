// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWhatNoClusterHasIsNamed(t *testing.T) {
	sorted := func(property string) *shipper.Placement {
		return &shipper.Placement{Type: shipper.PickN, Affinity: &shipper.ClusterAffinity{Preferred: []shipper.PreferredClusterTerm{{
			Weight: 1, Sort: &shipper.PropertySort{Property: property, Order: shipper.SortAscending},
		}}}}
	}
	spread := func(key string, when shipper.UnsatisfiableConstraintAction) *shipper.Placement {
		return &shipper.Placement{Type: shipper.PickN, TopologySpreadConstraints: []shipper.TopologySpreadConstraint{{
			TopologyKey: key, WhenUnsatisfiable: when,
		}}}
	}
	prefers := &shipper.Placement{Affinity: &shipper.ClusterAffinity{Preferred: []shipper.PreferredClusterTerm{{
		ClusterTerm: shipper.ClusterTerm{Properties: []shipper.PropertyRequirement{{Name: "cost"}, {Name: "csot"}}},
	}}}}
	fleet := []shipper.Cluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"zone": "z"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: shipper.ClusterSpec{Properties: map[string]string{"cost": "3"}}},
	}
	for sentence, tc := range map[string]struct {
		policy   *shipper.Placement
		clusters []shipper.Cluster
		want     []string
	}{
		"no placement":                   {nil, fleet, nil},
		"no clusters":                    {sorted("csot"), nil, nil},
		"a property that one has":        {sorted("cost"), fleet, nil},
		"a label that one has":           {spread("zone", shipper.ScheduleAnyway), fleet, nil},
		"a label that must be satisfied": {spread("zoen", shipper.DoNotSchedule), fleet, nil},
		"a property that none has": {sorted("csot"), fleet, []string{
			`affinity.preferred[0].sort.property: no Cluster has the property "csot": it changes nothing until one has`}},
		"a property of a preference that none has": {prefers, fleet, []string{
			`affinity.preferred[0].properties[1].name: no Cluster has the property "csot": it changes nothing until one has`}},
		"a label that none has": {spread("zoen", shipper.ScheduleAnyway), fleet, []string{
			`topologySpreadConstraints[0].topologyKey: no Cluster has the label "zoen": it changes nothing until one has`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Unmatched(tc.policy, tc.clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
