// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// stolen is the metadata of Pods that would join the Service of the Application "victim".
const stolen = `{labels: {app: evil, shipper-app: victim, shipper-release: victim-1, shipper-release-hash: victim, ` +
	`shipper-owned-by: victim-1, shipper-traffic-status: enabled, shipper-lb: production, shipper-proof: uid, ` +
	`shipper.booking.com/x: "1", serves.shipper.booking.com/web: "true"}, annotations: {note: here, shipper.booking.com/hook-run: "1"}}`

// workloads are objects whose Pods have stolen metadata, by what they are.
var workloads = map[string]string{
	"StatefulSet": "apiVersion: apps/v1\n" +
		"kind: StatefulSet\nmetadata: {name: s}\nspec: {selector: {matchLabels: {app: evil}}, template: {metadata: %s}}",
	"DaemonSet": "apiVersion: apps/v1\n" +
		"kind: DaemonSet\nmetadata: {name: s}\nspec: {selector: {matchLabels: {app: evil}}, template: {metadata: %s}}",
	"ReplicaSet": "apiVersion: apps/v1\n" +
		"kind: ReplicaSet\nmetadata: {name: s}\nspec: {selector: {matchLabels: {app: evil}}, template: {metadata: %s}}",
	"ReplicationController": "apiVersion: v1\n" +
		"kind: ReplicationController\nmetadata: {name: s}\nspec: {selector: {app: evil}, template: {metadata: %s}}",
	"Job": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: s}\nspec: {template: {metadata: %s}}",
	"CronJob": "apiVersion: batch/v1\n" +
		"kind: CronJob\nmetadata: {name: s}\nspec: {jobTemplate: {spec: {template: {metadata: %s}}}}",
	"PodTemplate": "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: s}\ntemplate: {metadata: %s}",
	"Rollout": "apiVersion: argoproj.io/v1alpha1\n" +
		"kind: Rollout\nmetadata: {name: s}\nspec: {template: {metadata: %s}}",
	"Prometheus": "apiVersion: monitoring.coreos.com/v1\n" +
		"kind: Prometheus\nmetadata: {name: s}\nspec: {podMetadata: %s}",
	"Composition": "apiVersion: example.com/v1\n" +
		"kind: Composition\nmetadata: {name: s}\nspec: {manifests: [{kind: Pod, metadata: %s}]}",
	"Pod": "apiVersion: v1\nkind: Pod\nmetadata: %s\nspec: {containers: []}",
}

// stolenFrom are the places in an object where a text of stolen is left. The object's own metadata has Shipper's labels.
func stolenFrom(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	object := o.DeepCopy()
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	delete(object.Object, "metadata")
	raw, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	if strings.Contains(string(raw), "shipper") {
		found = append(found, string(raw))
	}
	for key, value := range labels {
		if strings.HasPrefix(value, "victim") || key == "shipper-traffic-status" || key == "shipper-lb" || key == "shipper-proof" {
			found = append(found, "label "+key+": "+value)
		}
	}
	for key := range annotations {
		if strings.HasPrefix(key, "shipper") {
			found = append(found, "annotation "+key)
		}
	}
	return found
}

func TestPodsOfOtherWorkloadsHaveNoLabelsOfShipper(t *testing.T) {
	for kind, text := range workloads {
		for _, hook := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hook %t", kind, hook), func(t *testing.T) {
				metadata := stolen
				if kind == "Pod" {
					metadata = strings.Replace(metadata, "{labels", "{name: s, labels", 1)
				}
				text := fmt.Sprintf(text, metadata)
				if hook {
					const run = `annotations: {helm.sh/hook: pre-install, `
					if kind == "Pod" {
						text = strings.Replace(text, "annotations: {", run, 1)
					} else {
						text = strings.Replace(text, "{name: s}", "{name: s, "+run+"note: x}}", 1)
					}
				}
				m := renderTarget(t, sample(t, map[string]string{"templates/evil.yaml": text}), nil)
				prepared, err := m.Prepare(target)
				if err != nil {
					t.Fatal(err)
				}
				hooks, err := m.Hooks(target)
				if err != nil {
					t.Fatal(err)
				}
				var one *unstructured.Unstructured
				for _, o := range append(prepared, hooks...) {
					if o.GetKind() == kind {
						one = &o
					}
				}
				if one == nil || len(hooks) > 0 != hook {
					t.Fatalf("there is no %s among %d objects and %d hooks", kind, len(prepared), len(hooks))
				}
				if found := stolenFrom(t, one); found != nil {
					t.Errorf("it has still %q", found)
				}
				if raw, _ := one.MarshalJSON(); !strings.Contains(string(raw), `"app":"evil"`) || !strings.Contains(string(raw), `"note":`) {
					t.Errorf("it lacks labels or annotations of its own: %s", raw)
				}
			})
		}
	}
}

// TestAHookThatIsADeploymentHasNoLabelsOfShipper: it is not the Deployment that Shipper rolls out.
func TestAHookThatIsADeploymentHasNoLabelsOfShipper(t *testing.T) {
	m := renderTarget(t, sample(t, map[string]string{"templates/evil.yaml": fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\n"+
		"metadata: {name: s, annotations: {helm.sh/hook: pre-install}}\n"+
		"spec: {selector: {matchLabels: {app: evil}}, template: {metadata: %s}}", stolen)}), nil)
	hooks, err := m.Hooks(target)
	if err != nil || len(hooks) != 1 {
		t.Fatal(len(hooks), err)
	}
	if found := stolenFrom(t, &hooks[0]); found != nil {
		t.Errorf("it has still %q", found)
	}
}

func TestObjectsOfChartsHaveNoMarksOfPlacedOnes(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {shipper.booking.com/owner: team/web, " +
		"shipper.booking.com/installed-digest: x, note: x%s}}\n"
	m := renderTarget(t, sample(t, map[string]string{
		"templates/evil.yaml": fmt.Sprintf(text, "s", ""), "templates/hook.yaml": fmt.Sprintf(text, "h", ", helm.sh/hook: pre-install"),
	}), nil)
	prepared, err := m.Prepare(target)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := m.Hooks(target)
	if err != nil || len(hooks) != 1 {
		t.Fatal(len(hooks), err)
	}
	for _, o := range append(prepared, hooks...) {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		annotations := o.GetAnnotations()
		_, owner := annotations[shipper.PlacedOwnerAnnotation]
		if _, digest := annotations[shipper.InstalledDigestAnnotation]; owner || digest || annotations["note"] != "x" {
			t.Errorf("%s has %v", o.GetName(), annotations)
		}
	}
}

func TestSelectorsKeepTheirOwnApplicationAlone(t *testing.T) {
	const text = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\n" +
		"spec: {selector: %s, template: {metadata: {labels: {app: s, %s, shipper-traffic-status: enabled}}}}"
	refused := func(key string) string {
		return `template sample/templates/s.yaml: StatefulSet "s": spec.selector asks for the label ` + key + `, which only Shipper sets ` +
			`on Pods; take it out of spec.selector and of spec.template.metadata.labels`
	}
	tests := map[string]struct {
		selector, label string
		want            map[string]string
		refused         string
	}{
		"the Application's own label": {
			"{matchLabels: {app: s, shipper-app: super}}", "shipper-app: super", map[string]string{"app": "s", "shipper-app": "super"}, "",
		},
		"the Application's own label in an expression": {
			"{matchLabels: {app: s}, matchExpressions: [{key: shipper-app, operator: Exists}]}", "shipper-app: super",
			map[string]string{"app": "s", "shipper-app": "super"}, "",
		},
		"the Application's own label, not selected": {
			"{matchLabels: {app: s}}", "shipper-app: super", map[string]string{"app": "s"}, "",
		},
		"a label that the Pods do not have": {
			"{matchLabels: {app: s, shipper-app: super}}", "tier: x", map[string]string{"app": "s", "tier": "x"}, "",
		},
		"the label of another Application": {"{matchLabels: {shipper-app: web}}", "shipper-app: web", nil, refused("shipper-app")},
		"the label of another Release": {
			"{matchLabels: {app: s, shipper-release: web-1}}", "shipper-release: web-1", nil, refused("shipper-release"),
		},
		"the traffic label": {
			"{matchLabels: {app: s, shipper-traffic-status: enabled}}", "tier: x", nil, refused("shipper-traffic-status"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := sample(t, map[string]string{"templates/s.yaml": fmt.Sprintf(text, test.selector, test.label)})
			objects, err := renderTarget(t, c, nil).Prepare(target)
			if test.refused != "" {
				if diff := cmp.Diff(failure{Reason: "ChartError", Message: test.refused}, read(t, err)); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			for _, o := range objects {
				if o.GetKind() == "StatefulSet" {
					got, _, _ = unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSelectorsOfOthersStayAsTheyAre: selectors, such as those of NetworkPolicies, may name Shipper's labels.
func TestSelectorsOfOthersStayAsTheyAre(t *testing.T) {
	c := sample(t, map[string]string{"templates/policy.yaml": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n" +
		"metadata: {name: p}\nspec: {podSelector: {matchLabels: {shipper-app: super, shipper-traffic-status: enabled}}}"})
	objects, err := renderTarget(t, c, nil).Prepare(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		got, _, err := unstructured.NestedStringMap(o.Object, "spec", "podSelector", "matchLabels")
		want := map[string]string{"shipper-app": "super", "shipper-traffic-status": "enabled"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
}
