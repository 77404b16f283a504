// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wantErrors compares the texts of errors, which have the path.
func wantErrors(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	var texts []string
	for _, err := range got {
		texts = append(texts, err.Error())
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func tolerating(p shipper.Placement, tolerations ...shipper.ClusterToleration) shipper.Placement {
	p.Tolerations = tolerations
	return p
}

func selecting(expressions ...metav1.LabelSelectorRequirement) shipper.ClusterTerm {
	return shipper.ClusterTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: expressions}}
}

func TestAPlacementThatCanNeverWorkIsRefused(t *testing.T) {
	count := func(p shipper.Placement, n int32) shipper.Placement { p.Count = &n; return p }
	prefer := func(change func(*shipper.PreferredClusterTerm)) shipper.Placement {
		term := shipper.PreferredClusterTerm{Weight: 1}
		change(&term)
		return prefers(pickN(1), term)
	}
	const properties = "placement.affinity.required[0].properties[0]"
	for sentence, tc := range map[string]struct {
		policy shipper.Placement
		want   []string
	}{
		"an unknown type": {shipper.Placement{Type: "PickOne"},
			[]string{`placement.type: Unsupported value: "PickOne": supported values: "PickAll", "PickFixed", "PickN"`}},
		"a count with PickAll":   {count(all(), 1), []string{"placement.count: Forbidden: only for PickN"}},
		"a count without a type": {count(shipper.Placement{}, 1), []string{"placement.count: Forbidden: only for PickN"}},
		"no count": {
			shipper.Placement{Type: shipper.PickN}, []string{"placement.count: Required value: needed for PickN: how many clusters"},
		},
		"a term that is empty": {requires(pickN(1), shipper.ClusterTerm{}), []string{"placement.affinity.required[0]: Required value: an empty " +
			"term matches every cluster: give names, a labelSelector or properties, or leave required out"}},
		"a negative count":        {pickN(-1), []string{"placement.count: Invalid value: -1: from 1 to 1000"}},
		"too many":                {pickN(1001), []string{"placement.count: Invalid value: 1001: from 1 to 1000"}},
		"PickFixed without names": {fixed(), []string{"placement.clusters: Required value: needed for PickFixed: the names of the clusters"}},
		"names with PickAll": {shipper.Placement{Clusters: []string{"a"}},
			[]string{"placement.clusters: Forbidden: only for PickFixed; others choose by names in affinity.required"}},
		"a name twice": {fixed("a", "a"), []string{`placement.clusters[1]: Duplicate value: "a"`}},
		"affinity with PickFixed": {requires(fixed("a"), shipper.ClusterTerm{}),
			[]string{"placement.affinity: Forbidden: not with PickFixed, which names its clusters: leave it out"}},
		"preferred with PickAll": {prefers(all(), shipper.PreferredClusterTerm{Weight: 1}),
			[]string{"placement.affinity.preferred: Forbidden: only for PickN: PickAll chooses all clusters that fit"}},
		"spread with PickAll": {spreads(all(), over("zone", 1)),
			[]string{"placement.topologySpreadConstraints: Forbidden: only for PickN: every other type chooses all clusters that fit"}},
		"tolerations with PickFixed": {tolerating(fixed("a"), shipper.ClusterToleration{Key: "a"}),
			[]string{"placement.tolerations: Forbidden: not with PickFixed, which ignores taints: leave it out"}},
		"the operator of KubeFleet's documentation": {
			requires(all(), selecting(metav1.LabelSelectorRequirement{Key: "a", Operator: "NotExists"})),
			[]string{`placement.affinity.required[0].labelSelector.matchExpressions[0].operator: Invalid value: "NotExists": use DoesNotExist`}},
		"values with Exists": {requires(all(), selecting(metav1.LabelSelectorRequirement{Key: "a", Operator: "Exists", Values: []string{"b"}})),
			[]string{"placement.affinity.required[0].labelSelector.matchExpressions[0].values: Forbidden: may not be specified " +
				"when `operator` is 'Exists' or 'DoesNotExist'"}},
		"an unknown operator of a property": {requires(all(), where("nodes", "In", "5")),
			[]string{properties + `.operator: Unsupported value: "In": supported values: "Eq", "Ge", "Gt", "Le", "Lt", "Ne"`}},
		"a value that is no quantity": {requires(all(), where("nodes", shipper.PropertyGe, "lots")),
			[]string{properties + `.value: Invalid value: "lots": not a quantity such as 5, 500m or 2Gi`}},
		"a value that takes long to compare": {requires(all(), where("nodes", shipper.PropertyGe, "1e999")),
			[]string{properties + `.value: Invalid value: "1e999": not a quantity such as 5, 500m or 2Gi`}},
		"a value that is no version": {requires(all(), where("kubernetes", shipper.PropertyGe, "2Gi")),
			[]string{properties + `.value: Invalid value: "2Gi": not a version such as 1.33 or 1.33.4`}},
		"a version with a suffix": {requires(all(), where("kubernetes", shipper.PropertyGe, "1.33.1-gke.1")),
			[]string{properties + `.value: Invalid value: "1.33.1-gke.1": not a version such as 1.33 or 1.33.4`}},
		"a property with an empty name": {requires(all(), where("", shipper.PropertyGe, "1")),
			[]string{properties + `.name: Invalid value: "": 1 to 253 letters, digits, '-', '_', '.' and '/', such as cpu.allocatable`}},
		"a weight above 100": {prefer(func(term *shipper.PreferredClusterTerm) { term.Weight = 101 }),
			[]string{"placement.affinity.preferred[0].weight: Invalid value: 101: from -100 to 100"}},
		"a sorter without order": {prefer(func(term *shipper.PreferredClusterTerm) { term.Sort = &shipper.PropertySort{Property: "nodes"} }),
			[]string{`placement.affinity.preferred[0].sort.order: Unsupported value: "": supported values: "Ascending", "Descending"`}},
		"a preferred term with a bad version": {prefer(func(term *shipper.PreferredClusterTerm) {
			term.ClusterTerm = where("kubernetes", shipper.PropertyEq, "1")
		}), []string{`placement.affinity.preferred[0].properties[0].value: Invalid value: "1": not a version such as 1.33 or 1.33.4`}},
		"an empty topology key": {
			spreads(pickN(1), over("", 1)), []string{"placement.topologySpreadConstraints[0].topologyKey: Required value: the key of a label"},
		},
		"a negative skew": {
			spreads(pickN(1), over("zone", -1)), []string{"placement.topologySpreadConstraints[0].maxSkew: Invalid value: -1: from 1 to 1000"},
		},
		"one constraint twice": {spreads(pickN(1), over("zone", 1), softly(over("zone", 2)), over("zone", 3)),
			[]string{`placement.topologySpreadConstraints[2]: Duplicate value: "zone, DoNotSchedule"`}},
		"an empty key with Equal": {tolerating(all(), shipper.ClusterToleration{Value: "b"}),
			[]string{`placement.tolerations[0].operator: Invalid value: "": an empty key goes with Exists`}},
		"a value with Exists": {tolerating(all(), shipper.ClusterToleration{Key: "a", Operator: shipper.TolerationExists, Value: "b"}),
			[]string{`placement.tolerations[0].value: Invalid value: "b": leave value out: Exists tolerates every value`}},
		"an unknown effect": {tolerating(all(), shipper.ClusterToleration{Key: "a", Effect: "NoExecute"}),
			[]string{`placement.tolerations[0].effect: Unsupported value: "NoExecute": supported values: "NoSchedule"`}},
		"an unknown operator of a toleration": {tolerating(all(), shipper.ClusterToleration{Key: "a", Operator: "In"}),
			[]string{`placement.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			wantErrors(t, placement.Validate(&tc.policy, field.NewPath("placement")), tc.want...)
		})
	}
}

func TestNamesAndLabelsAreThoseOfKubernetes(t *testing.T) {
	p := tolerating(spreads(requires(pickN(1), shipper.ClusterTerm{Names: []string{"A_b"}}), over("a b", 1)),
		shipper.ClusterToleration{Key: "a b", Value: "x y"})
	var fields []string
	for _, err := range placement.Validate(&p, nil) {
		fields = append(fields, err.Field+" "+strings.ToLower(string(err.Type)))
	}
	want := []string{
		"affinity.required[0].names[0] fieldvalueinvalid", "topologySpreadConstraints[0].topologyKey fieldvalueinvalid",
		"tolerations[0].key fieldvalueinvalid", "tolerations[0].value fieldvalueinvalid",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAPlacementIsAccepted(t *testing.T) {
	full := tolerating(spreads(prefers(pickN(3), shipper.PreferredClusterTerm{
		Weight: -100, ClusterTerm: withLabel("env", "prod"), Sort: &shipper.PropertySort{Property: "cpu.capacity", Order: shipper.SortAscending},
	}), over(shipper.RegionLabel, 0), softly(over(shipper.RegionLabel, 3))),
		shipper.ClusterToleration{Operator: shipper.TolerationExists}, shipper.ClusterToleration{Key: "example.com/gpu", Value: "yes"})
	full.Affinity.Required = []shipper.ClusterTerm{
		where("kubernetes", shipper.PropertyGe, "v1.33"), where("nvidia.com/gpu.allocatable", shipper.PropertyGt, "500m"),
		{Names: []string{"eu-1"}},
	}
	for _, p := range []*shipper.Placement{nil, {}, new(all()), new(pickN(1)), new(fixed("eu-1")), &full} {
		wantErrors(t, placement.Validate(p, field.NewPath("placement")))
	}
}

func TestTaintsOfAClusterAreValidated(t *testing.T) {
	path := field.NewPath("spec", "taints")
	wantErrors(t, placement.ValidateTaints([]shipper.ClusterTaint{
		{Key: "example.com/gpu", Value: "yes"}, {Key: "a"}, {Key: "a", Value: "b", Effect: shipper.TaintNoSchedule},
		{Effect: "NoExecute"},
	}, path), `spec.taints[2]: Duplicate value: "a, NoSchedule"`, "spec.taints[3].key: Required value: the key of a label",
		`spec.taints[3].effect: Unsupported value: "NoExecute": supported values: "NoSchedule"`)
	if errs := placement.ValidateTaints([]shipper.ClusterTaint{{Key: "a b", Value: "c d"}}, path); len(errs) != 2 {
		t.Errorf("got %v", errs)
	}
}

func TestPropertiesOfAClusterAreValidated(t *testing.T) {
	path := field.NewPath("spec", "properties")
	wantErrors(t, placement.ValidateProperties(map[string]string{
		"price": "0.5", "kubernetes": "1.33", "a.b/c.capacity": "2Gi",
	}, path))
	wantErrors(t, placement.ValidateProperties(map[string]string{"b": "lots", "a b": "1", "kubernetes": "5"}, path),
		`spec.properties[a b]: Invalid value: "a b": 1 to 253 letters, digits, '-', '_', '.' and '/', such as cpu.allocatable`,
		`spec.properties[b]: Invalid value: "lots": not a quantity such as 5, 500m or 2Gi`,
		`spec.properties[kubernetes]: Invalid value: "5": not a version such as 1.33 or 1.33.4`)
	many := map[string]string{}
	for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "") {
		many[letter] = "1"
	}
	wantErrors(t, placement.ValidateProperties(many, path), "spec.properties: Too many: 52: must have at most 50 items")
}
