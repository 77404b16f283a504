// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// tasks are the manifests of Shipper that the design has beside those of KubeFleet, by file.
var tasks = map[string][]string{
	"fleet-1-clusters": {
		`{kind: Cluster, metadata: {name: eu-1, labels: {env: prod}}, spec: {region: eu,
		taints: [{key: gpu, value: "yes", effect: NoSchedule}]}}`,
		`{kind: Cluster, metadata: {name: edge-7}, spec: {region: edge, onLeave: Remove}}`,
	},
	"fleet-2-namespace": {`{kind: Application, metadata: {name: work, namespace: work}, spec: {template: {
		resources: {select: [{kind: Namespace, name: work}]}, clusterRequirements: {placement: {type: PickAll}}}}}`},
	"fleet-3-ranked": {`{kind: Application, spec: {template: {
		resources: {select: [{group: rbac.authorization.k8s.io, kind: ClusterRole, labelSelector: {matchLabels: {team: sre}}}]},
		clusterRequirements: {placement: {type: PickN, count: 3, affinity: {required: [{properties: [{name: nodes, operator: Ge, value: "5"}]}],
		preferred: [{weight: 20, sort: {property: cpu.available, order: Descending}}]}}}}}}`},
	// The label stays: Clusters keep their labels.
	"fleet-4-spread": {`{kind: Application, spec: {template: {clusterRequirements: {placement: {type: PickN, count: 4,
		tolerations: [{key: gpu, operator: Exists}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: region,
		whenUnsatisfiable: DoNotSchedule}]}}}}}`},
	"fleet-5-fixed": {`{kind: Application, spec: {driftPolicy: Halt, template: {clusterRequirements: {placement: {type: PickFixed,
		clusters: [eu-1, us-1]}}, apply: {type: ServerSide, takeOver: IfNoDiff, comparison: Full}}}}`},
	"fleet-6-envelope": {
		`{kind: Envelope, metadata: {name: guard, namespace: platform}, spec: {manifests: [{apiVersion: admissionregistration.k8s.io/v1,
		kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: []}]}}`,
		`{kind: Application, metadata: {namespace: platform}, spec: {template: {resources: {select: [
		{group: shipper.booking.com, kind: Envelope, name: guard}]}}}}`,
	},
	"fleet-8-rolling": {`{kind: Application, spec: {template: {strategy: {rolling: {maxUnavailable: 25%, maxSurge: 25%},
		unavailablePeriod: 1m}}}}`},
}

// missing are the fields of a manifest that an object lacks, or has with another value. Lists are compared item by item.
func missing(want, got any, at string) []string {
	var out []string
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for key := range want {
			out = append(out, missing(want[key], fields[key], at+"."+key)...)
		}
		return out
	case []any:
		items, _ := got.([]any)
		if len(items) != len(want) {
			return []string{at}
		}
		for i := range want {
			out = append(out, missing(want[i], items[i], at)...)
		}
		return out
	}
	if !cmp.Equal(want, got) {
		return []string{at}
	}
	return nil
}

func TestTheTasksOfTheDesignAreConverted(t *testing.T) {
	for name, want := range tasks {
		t.Run(name, func(t *testing.T) {
			_, out := converting(t, name)
			if len(out.fleet) != len(want) {
				t.Fatalf("%d objects, want %d", len(out.fleet), len(want))
			}
			for i, one := range out.fleet {
				text, err := manifest(one.object)
				if err != nil {
					t.Fatal(err)
				}
				var wanted, got any
				if err := yaml.Unmarshal([]byte(strings.ReplaceAll(want[i], "\t", " ")), &wanted); err != nil {
					t.Fatal(err)
				}
				if err := yaml.Unmarshal([]byte(text), &got); err != nil {
					t.Fatal(err)
				}
				if lacks := missing(wanted, got, ""); len(lacks) > 0 {
					t.Errorf("%v are not as in the design:\n%s", lacks, text)
				}
			}
		})
	}
}

// placementWith is a placement of a Namespace with more fields in its spec.
func placementWith(fields string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: work}, spec: {` +
		`resourceSelectors: [{group: "", version: v1, kind: Namespace, name: work}], ` + fields + `}}`
}

// convertedPlacement is the Application of a placement, and what is to be reviewed.
func convertedPlacement(t *testing.T, in string) (*shipper.Application, []string) {
	t.Helper()
	out, err := convert(t.Context(), []byte(in), settings{})
	if err != nil {
		t.Fatal(err)
	}
	app, ok := out.fleet[len(out.fleet)-1].object.(*shipper.Application)
	if !ok {
		t.Fatalf("there is no Application, but %T", out.fleet[0].object)
	}
	return app, out.reviews()
}

func TestEveryServedVersionIsReadAlike(t *testing.T) {
	member := `{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: a}}` + "\n---\n"
	in := member + placementWith("policy: {placementType: PickN, numberOfClusters: 1}")
	var first string
	for _, version := range fleetVersions {
		out, err := convert(t.Context(), []byte(strings.ReplaceAll(in, "/v1beta1", "/"+version)), settings{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := out.print()
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = text
		}
		if diff := cmp.Diff(first, text); diff != "" || len(out.fleet) != 2 {
			t.Errorf("%s makes %d objects (-first +this):\n%s", version, len(out.fleet), diff)
		}
	}
}

func TestDefaultsOfFleetAreWritten(t *testing.T) {
	app, reviews := convertedPlacement(t, placementWith(""))
	want := shipper.ApplicationSpec{DriftPolicy: shipper.DriftCorrect, RevisionHistoryLimit: new(int32(10))}
	want.Template = shipper.ReleaseEnvironment{
		Resources: &shipper.Resources{
			Select: []shipper.ResourceSelector{{Kind: "Namespace", Name: "work"}}, Removal: shipper.RemovalAll,
		},
		ClusterRequirements: shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickAll}},
		Strategy:            &shipper.RolloutStrategy{},
		Apply:               &shipper.Apply{Type: shipper.ApplyClientSide, TakeOver: shipper.TakeOverAlways},
	}
	if diff := cmp.Diff(want, app.Spec); diff != "" || len(reviews) > 0 {
		t.Errorf("%v, and the Application is not as KubeFleet's defaults (-want +got):\n%s", reviews, diff)
	}
}

func TestServerSideApplyForcesNothingUnlessItSaysSo(t *testing.T) {
	for fields, force := range map[string]bool{"": false, ", serverSideApplyConfig: {force: true}": true} {
		app, _ := convertedPlacement(t, placementWith("strategy: {applyStrategy: {type: ServerSideApply"+fields+"}}"))
		want := &shipper.Apply{Type: shipper.ApplyServerSide, ForceConflicts: &force, TakeOver: shipper.TakeOverAlways}
		if diff := cmp.Diff(want, app.Spec.Template.Apply); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", fields, diff)
		}
	}
}

func TestBoundsOfClustersAreConverted(t *testing.T) {
	app, _ := convertedPlacement(t, placementWith(
		`strategy: {rollingUpdate: {maxUnavailable: "2", maxSurge: 0%, unavailablePeriodSeconds: 0}}`))
	want := &shipper.RolloutStrategy{
		Rolling:           &shipper.RollingClusters{MaxUnavailable: new(intstr.FromInt32(2)), MaxSurge: new(intstr.FromString("0%"))},
		UnavailablePeriod: "0s",
	}
	if diff := cmp.Diff(want, app.Spec.Template.Strategy); diff != "" {
		t.Errorf("strategy (-want +got):\n%s", diff)
	}
}

func TestMaxUnavailableOfZeroBecomesOne(t *testing.T) {
	for _, zero := range []string{"0", `"0"`, "0%", "00%"} {
		app, reviews := convertedPlacement(t, placementWith(`strategy: {rollingUpdate: {maxUnavailable: `+zero+`, maxSurge: 0}}`))
		want := &shipper.RollingClusters{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0))}
		if diff := cmp.Diff(want, app.Spec.Template.Strategy.Rolling); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", zero, diff)
		}
		if !strings.Contains(fmt.Sprint(reviews), "spec.strategy.rollingUpdate.maxUnavailable: 0 becomes 1") {
			t.Errorf("of %s, reviews are %v", zero, reviews)
		}
	}
}

func TestTheNamespaceOfAnApplication(t *testing.T) {
	selecting := func(selectors string) string {
		return "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: a}, spec: {resourceSelectors: [" +
			selectors + "]}}"
	}
	const work, shop, role = "{kind: Namespace, name: work}", "{kind: Namespace, name: shop}", "{kind: ClusterRole, name: a}"
	for sentence, c := range map[string]struct{ in, given, want string }{
		"is that which is selected":                      {selecting(work + "," + role), "platform", "work"},
		"is given where two are selected":                {selecting(work + "," + shop), "platform", "platform"},
		"is given where Namespaces are selected by kind": {selecting("{kind: Namespace}"), "platform", "platform"},
		"is fleet where none is given":                   {selecting(role), "", "fleet"},
		"is that of a ResourcePlacement": {`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ResourcePlacement, ` +
			`metadata: {name: a, namespace: own}, spec: {resourceSelectors: [{kind: ConfigMap, name: a}]}}`, "platform", "own"},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(c.in), settings{namespace: c.given})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.fleet[0].object.GetNamespace(); got != c.want {
				t.Errorf("the namespace is %q, want %q", got, c.want)
			}
		})
	}
}

func TestSelectorsOfAllNamespacesAndSecretsSaySo(t *testing.T) {
	all := &metav1.LabelSelector{}
	for _, from := range []resourceSelector{{Kind: "Namespace"}, {Kind: "Secret"}} {
		if got := from.convert("", "work", settings{}, &report{}); !reflect.DeepEqual(got.LabelSelector, all) {
			t.Errorf("%s becomes %+v, want labelSelector: {}", from.Kind, got)
		}
	}
	for _, from := range []resourceSelector{{Kind: "Namespace", Name: "a"}, {Kind: "ConfigMap"}, {Group: "example.com", Kind: "Secret"}} {
		if got := from.convert("", "work", settings{}, &report{}); got.LabelSelector != nil {
			t.Errorf("%+v becomes %+v, want no labelSelector", from, got)
		}
	}
}

func TestPropertiesHaveShortNames(t *testing.T) {
	for name, want := range map[string]struct {
		name     string
		reviewed bool
	}{
		"kubernetes-fleet.io/node-count":                   {"nodes", false},
		"resources.kubernetes-fleet.io/total-cpu":          {"cpu.capacity", false},
		"resources.kubernetes-fleet.io/allocatable-memory": {"memory.allocatable", false},
		"resources.kubernetes-fleet.io/available-memory":   {"memory.available", true},
		"resources.kubernetes-fleet.io/other-memory":       {"resources.kubernetes-fleet.io/other-memory", true},
		"total-cpu": {"total-cpu", true},
	} {
		report := &report{}
		got := propertyOf(name, "spec", report)
		if got != want.name || len(report.reviews) > 0 != want.reviewed {
			t.Errorf("%s is %s, reviews %q; want %+v", name, got, report.reviews, want)
		}
	}
}

func TestTheRegionOfACluster(t *testing.T) {
	const member = "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: a, labels: {"
	for sentence, c := range map[string]struct {
		labels   string
		regions  []string
		want     string
		reviewed bool
	}{
		"is its label":               {"topology.kubernetes.io/region: eu", []string{"us"}, "eu", false},
		"is the one that is given":   {"", []string{"us"}, "us", false},
		"is unknown":                 {"", nil, placeholderRegion, true},
		"is not chosen from several": {"", []string{"eu", "us"}, placeholderRegion, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(member+c.labels+"}}}"), settings{regions: c.regions})
			if err != nil {
				t.Fatal(err)
			}
			cluster, ok := out.fleet[0].object.(*shipper.Cluster)
			if !ok || cluster.Spec.Region != c.want {
				t.Errorf("got %+v, want the region %s", out.fleet[0].object, c.want)
			}
			if got := strings.Contains(strings.Join(out.reviews(), "\n"), placeholderRegion); got != c.reviewed {
				t.Errorf("reviews are %q", out.reviews())
			}
		})
	}
}

func TestRefusalsOfFleet(t *testing.T) {
	policy := func(fields string) string { return placementWith("policy: {" + fields + "}") }
	rolling := func(fields string) string { return placementWith("strategy: {rollingUpdate: {" + fields + "}}") }
	envelope := func(kind, data string) string {
		return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: " + kind + ", metadata: {name: a}, data: " + data + "}"
	}
	const required = "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [" +
		"{propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: "
	for sentence, c := range map[string]struct{ in, want string }{
		"no number for PickN": {policy("placementType: PickN"), "document 1: spec.policy.numberOfClusters is missing: PickN needs it"},
		"no names for PickFixed": {policy("placementType: PickFixed"),
			"document 1: spec.policy.clusterNames is missing: PickFixed needs it"},
		"an unknown type": {policy("placementType: PickTwo"),
			`document 1: spec.policy.placementType is "PickTwo", and must be PickAll, PickFixed or PickN`},
		"two values of a property": {policy(required + `["1", "2"]}]}}]}}}`), "document 1: spec.policy.affinity.clusterAffinity." +
			"requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[0].propertySelector.matchExpressions[0].values has 2 " +
			"values, and must have one"},
		"a value that is no quantity": {policy(required + `[lots]}]}}]}}}`), "document 1: spec.policy makes a placement that Shipper refuses: " +
			`placement.affinity.required[0].properties[0].value: Invalid value: "lots": not a quantity such as 5, 500m or 2Gi`},
		"a selection that is empty": {`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ResourcePlacement, metadata: {name: a}, spec: {}}`,
			"document 1: spec.resourceSelectors select nothing that is placed"},
		"an unknown apply strategy": {placementWith("strategy: {applyStrategy: {type: Replace}}"),
			`document 1: spec.strategy.applyStrategy.type is "Replace", and must be one of ClientSideApply, ReportDiff, ServerSideApply`},
		"more than all clusters": {rolling("maxSurge: 101%"), `document 1: spec.strategy.rollingUpdate.maxSurge is "101%", and must be a ` +
			"number of clusters, or a percentage from 0% to 100%"},
		"an envelope with text": {envelope(clusterEnvelope, "{a: b}"), "document 1: data.a is a string, and must be an object"},
		"an empty envelope":     {envelope(namespacedEnvelope, "{}"), "document 1: data has no manifests"},
		"two envelopes of one name": {
			envelope(clusterEnvelope, "{a: {kind: A}}") + "\n---\n" +
				strings.Replace(envelope(namespacedEnvelope, "{a: {kind: A}}"), "name: a", "name: a, namespace: fleet", 1),
			"document 2: ClusterResourceEnvelope a and ResourceEnvelope a make the Envelope fleet/a: rename one of the two",
		},
		"a name that no Application can have": {
			strings.Replace(placementWith(""), "name: work}, spec", "name: "+strings.Repeat("a", 64)+"}, spec", 1),
			"document 1: metadata.name cannot be the name of an Application: must be no more than 63 bytes",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := convert(t.Context(), []byte(c.in), settings{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}
