// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/tracking"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// delivered are the labels of an Application that tools have delivered: some by which they know it, and some that charts set, too.
var delivered = map[string]string{
	"app.kubernetes.io/instance": "argo", "app.kubernetes.io/managed-by": "kustomize", "kustomize.toolkit.fluxcd.io/name": "flux",
	"objectset.rio.cattle.io/hash": "rancher", "applyset.kubernetes.io/part-of": "kubectl", "kapp.k14s.io/app": "kapp",
	"app.kubernetes.io/name": "common", "app.kubernetes.io/component": "common", "app.kubernetes.io/part-of": "common",
	"app.kubernetes.io/version": "common", "helm.sh/chart": "common", "app": "common", "component": "common", "release": "common",
	"name": "common", "role": "common", "tier": "common", "chart": "common", "heritage": "common",
}

// releaseOf is the Release of an Application with these labels, as one is made now.
func releaseOf(t *testing.T, of map[string]string, naming shipper.ChartNaming) *shipper.Release {
	t.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Labels: of}}
	app.Spec.Template.Chart = shipper.Chart{Name: "any", Version: "1", Naming: naming}
	rel, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// preparedFor is what a chart installs for a Release.
func preparedFor(t *testing.T, c *render.Chart, given shipper.ChartValues, rel *shipper.Release) []unstructured.Unstructured {
	t.Helper()
	to := render.TargetOf(&rel.ObjectMeta, rel.Spec.Environment.Chart.Naming, "", nil)
	manifest, err := c.Render(t.Context(), &given, to)
	if err != nil {
		t.Fatal(err)
	}
	out, err := manifest.Prepare(to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// called names an object.
func called(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// selected are, by object with a selector of Pods, the workloads whose Pods it selects.
func selected(t *testing.T, objects []unstructured.Unstructured) map[string][]string {
	t.Helper()
	pods := map[string]labels.Set{}
	for i := range objects {
		if of, found, _ := unstructured.NestedStringMap(objects[i].Object, "spec", "template", "metadata", "labels"); found {
			pods[called(&objects[i])] = of
		}
	}
	out := map[string][]string{}
	for i := range objects {
		o := &objects[i]
		field := "selector"
		if o.GetKind() == "NetworkPolicy" {
			field = "podSelector"
		}
		raw, found, err := unstructured.NestedMap(o.Object, "spec", field)
		if !found || err != nil {
			continue
		}
		var matching labels.Selector
		if o.GetKind() == "Service" {
			by, _, _ := unstructured.NestedStringMap(o.Object, "spec", field)
			matching = labels.SelectorFromSet(by)
		} else {
			var selector metav1.LabelSelector
			if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector) != nil {
				continue // of another kind
			}
			if matching, err = metav1.LabelSelectorAsSelector(&selector); err != nil {
				t.Errorf("%s: %v", called(o), err)
				continue
			}
		}
		out[called(o)] = []string{}
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			if matching.Matches(pods[name]) {
				out[called(o)] = append(out[called(o)], name)
			}
		}
	}
	return out
}

// checkDelivered holds what a chart installs for an Application with the labels of tools against what it installs for one without labels.
func checkDelivered(t *testing.T, c *render.Chart, given shipper.ChartValues, naming shipper.ChartNaming) {
	t.Helper()
	plain := preparedFor(t, c, given, releaseOf(t, nil, naming))
	got := preparedFor(t, c, given, releaseOf(t, delivered, naming))
	if diff := cmp.Diff(selected(t, plain), selected(t, got)); diff != "" {
		t.Errorf("what selectors select (-without labels +with labels):\n%s", diff)
	}
	for i := range plain {
		for _, fields := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
			want, _, _ := unstructured.NestedStringMap(plain[i].Object, fields...)
			has, _, _ := unstructured.NestedStringMap(got[i].Object, fields...)
			for key, value := range has {
				if was, of := want[key]; of && was != value || !of && tracking.Is(key) {
					t.Errorf("%s: %s has %s: %s, without labels of the Application %q", called(&got[i]), strings.Join(fields, "."), key, value, was)
				}
			}
			for key := range want {
				if _, there := has[key]; !there {
					t.Errorf("%s: %s lacks %s", called(&got[i]), strings.Join(fields, "."), key)
				}
			}
		}
	}
}

// guarded has objects that select its Pods, by labels that tools set on Applications.
var guarded = map[string]string{
	"templates/deployment.yaml": named + `spec:
  selector: {matchLabels: {app.kubernetes.io/name: sample, app.kubernetes.io/instance: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app.kubernetes.io/name: sample, app.kubernetes.io/instance: "{{ .Release.Name }}", app.kubernetes.io/version: "1"}}
    spec: {containers: [{name: a, image: nginx}]}
`,
	"templates/service.yaml": serving + "metadata: {name: sample}\nspec: {selector: {app.kubernetes.io/name: sample}}\n",
	"templates/guards.yaml": `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: sample}
spec: {podSelector: {matchLabels: {app.kubernetes.io/name: sample, app.kubernetes.io/instance: "{{ .Release.Name }}"}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: sample, labels: {app.kubernetes.io/managed-by: Helm}}
spec: {selector: {matchExpressions: [{key: app.kubernetes.io/instance, operator: In, values: ["{{ .Release.Name }}"]}]}}
`,
}

func TestSelectorsOfAChartSelectWhateverLabelsTheApplicationHas(t *testing.T) {
	c := sample(t, guarded)
	for _, naming := range []shipper.ChartNaming{shipper.NamingByRelease, shipper.NamingByApplication} {
		t.Run(string(naming), func(t *testing.T) {
			checkDelivered(t, c, nil, naming)
			got := selected(t, preparedFor(t, c, nil, releaseOf(t, delivered, naming)))
			for _, guard := range []string{"NetworkPolicy sample", "PodDisruptionBudget sample"} {
				if len(got[guard]) != 1 {
					t.Errorf("%s selects %v", guard, got[guard])
				}
			}
		})
	}
}

func TestSelectorsOfPopularChartsSelectWhateverLabelsTheApplicationHas(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		if of.Name == "keda" {
			t.Skip("it writes to kube-system, and is refused")
		}
		c, err := render.Open(of.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		checkDelivered(t, c, of.Values, shipper.NamingByApplication)
	})
}

// earlier makes a Target as earlier versions of Shipper had it for a Release of theirs.
func earlier(of map[string]string) render.Target {
	rel := &metav1.ObjectMeta{Namespace: "shop", Name: "super-6f19aa85-0", Labels: maps.Clone(of)}
	rel.Labels[shipper.AppLabel], rel.Labels[shipper.ReleaseLabel], rel.Labels[shipper.ReleaseHashLabel] = "super", rel.Name, "6f19aa85"
	return render.TargetOf(rel, "", "", nil)
}

// later is the same for a Release of this version.
func later(of map[string]string) render.Target {
	t := earlier(of)
	t.ChartLabels = true
	return t
}

// TestLabelsOfADeploymentByRelease: those of Releases of earlier versions stay, as do those of Releases without a conflict.
func TestLabelsOfADeploymentByRelease(t *testing.T) {
	const marked = ", shipper-app: super, shipper-release: super-6f19aa85-0, shipper-release-hash: 6f19aa85, " +
		"shipper-owned-by: super-6f19aa85-0"
	both := func(of map[string]string) []render.Target { return []render.Target{earlier(of), later(of)} }
	tests := map[string]struct {
		selector, pods  string // of the chart
		targets         []render.Target
		want, wantsPods string
		refused         string
	}{
		"labels that the chart does not have": {
			"matchLabels: {app: a}", "app: a", both(map[string]string{"team": "b"}), "app: a, team: b", "app: a, team: b", "",
		},
		"a label that is the same": {
			"matchLabels: {app: a}", "app: a", both(map[string]string{"app": "a"}), "app: a", "app: a", "",
		},
		"the same, and not in the chart's selector": {
			"matchLabels: {app: a}", "app: a, team: b", both(map[string]string{"team": "b"}), "app: a, team: b", "app: a, team: b", "",
		},
		"labels of tools of a Release of an earlier version": {
			"matchLabels: {app: a}", "app: a", []render.Target{earlier(map[string]string{"app": "b", "kapp.k14s.io/app": "k"})},
			"app: b, kapp.k14s.io/app: k", "app: b, kapp.k14s.io/app: k", "",
		},
		"a label that the chart selects by": {
			"matchLabels: {app: a}", "app: a", []render.Target{later(map[string]string{"app": "b"})}, "app: a", "app: a", "",
		},
		"one that only its Pods have": {
			"matchLabels: {app: a}", "app: a, team: a", []render.Target{later(map[string]string{"team": "b"})}, "app: a", "app: a, team: a", "",
		},
		"one that its Pods must not have": {
			"matchExpressions: [{key: canary, operator: DoesNotExist}]", "app: a", []render.Target{later(map[string]string{"canary": "b"})},
			"", "app: a", "",
		},
		"one that its Pods lack": {
			"matchLabels: {app: a}", "team: a", []render.Target{later(map[string]string{"app": "b"})}, "", "",
			`spec.selector asks for "app=a", but its Pods have no such label`,
		},
		"a label of Shipper's": {
			"matchLabels: {app: a}", "app: a, shipper-app: x", []render.Target{later(map[string]string{"shipper-lb": "production"})},
			"app: a", "app: a", "",
		},
	}
	for name, tc := range tests {
		for _, to := range tc.targets {
			c := sample(t, map[string]string{"templates/deployment.yaml": named +
				"spec: {selector: {" + tc.selector + "}, template: {metadata: {labels: {" + tc.pods + "}}}}"})
			manifest, err := c.Render(t.Context(), nil, to)
			if err != nil {
				t.Fatal(err)
			}
			got, err := manifest.Prepare(to)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			o := got[slices.IndexFunc(got, func(o unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })]
			for want, fields := range map[string][]string{
				"s: {" + strings.TrimPrefix(tc.want+marked, ", ") + "}": {"spec", "selector", "matchLabels"},
				"p: {" + tc.wantsPods + marked + "}":                    {"spec", "template", "metadata", "labels"},
			} {
				is, _, _ := unstructured.NestedStringMap(o.Object, fields...)
				of, _, _ := unstructured.NestedStringMap(asYAML(t, "apiVersion: v1\nkind: X\n"+want)[0].Object, want[:1])
				if diff := cmp.Diff(of, is); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", name, strings.Join(fields, "."), diff)
				}
			}
		}
	}
}

// TestARestoredTargetIsTheSame: Velero labels all that it restores. A target without them is what was installed.
func TestARestoredTargetIsTheSame(t *testing.T) {
	rel := releaseOf(t, map[string]string{"team": "web"}, shipper.NamingByRelease)
	want := render.TargetOf(&rel.ObjectMeta, "", "", nil)
	rel.Labels["velero.io/backup-name"], rel.Labels["velero.io/restore-name"] = "nightly", "today"
	if diff := cmp.Diff(want, render.TargetOf(&rel.ObjectMeta, "", "", nil)); diff != "" || !want.ChartLabels {
		t.Errorf("labels of the chart win: %t; -before +after:\n%s", want.ChartLabels, diff)
	}
}
