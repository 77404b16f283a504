// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// switched is a chart that is there while its condition holds.
func switched(t *testing.T, condition string, more map[string]string) *render.Chart {
	t.Helper()
	all := func(content string) string { return "{{ if " + condition + " }}\n" + content + "{{ end }}\n" }
	files := map[string]string{"templates/deployment.yaml": all(deployment), "templates/service.yaml": all(service)}
	for name, content := range more {
		files[name] = content
	}
	return sample(t, files)
}

func TestAChartMayRenderToNothing(t *testing.T) {
	const depends = `chart "sample" 1.2.3: it renders to nothing or to something depending on what version or APIs the cluster has; ` +
		`it must have exactly one Deployment in every cluster, or nothing by its values alone`
	const none = `chart "sample" 1.2.3: it must have exactly one Deployment, but 0 are found`
	hook := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: pre-upgrade}}\n"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\n"
	gadgets := render.Target{ReleaseName: "super-0", Namespace: "shop", App: "super", APIVersions: []string{"v1", "example.com/v1"}}
	aged := render.Target{ReleaseName: "super-0", Namespace: "shop", App: "super", KubeVersion: "v1.27.3"}
	tests := map[string]struct {
		condition string
		files     map[string]string
		target    render.Target
		want      string // the refusal; empty when there is none
	}{
		"all templates are switched off": {condition: ".Values.enabled"},
		"whatever the cluster has": {
			condition: `and .Values.enabled (.Capabilities.APIVersions.Has "example.com/v1")`, target: gadgets,
		},
		"notes are for people": {condition: "false", files: map[string]string{"templates/NOTES.txt": "off"}},
		"there are no templates": {
			condition: "false", files: map[string]string{"templates/deployment.yaml": "", "templates/service.yaml": ""},
		},
		"a hook is left":       {condition: "false", files: map[string]string{"templates/hook.yaml": hook}, want: none},
		"a definition is left": {condition: "false", files: map[string]string{"crds/a.yaml": crd}, want: none},
		"a Service is left": {condition: "false",
			files: map[string]string{"templates/service.yaml": service}, want: none},
		"other clusters have the API that it requires": {condition: `.Capabilities.APIVersions.Has "example.com/v1"`, want: depends},
		"this cluster has the API that it excludes": {
			condition: `not (.Capabilities.APIVersions.Has "example.com/v1")`, target: gadgets, want: depends,
		},
		"older clusters have it": {condition: `semverCompare "<1.30-0" .Capabilities.KubeVersion.Version`, want: depends},
		"newer clusters have it": {
			condition: `ge (int .Capabilities.KubeVersion.Minor) 30`, target: aged, want: depends,
		},
		"older clusters are refused": {
			condition: `and .Values.enabled true`, target: aged,
			files: map[string]string{
				"templates/check.yaml": `{{ if semverCompare "<1.27-0" .Capabilities.KubeVersion.Version }}{{ fail "old" }}{{ end }}`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			on := test.target
			if on.App == "" {
				on = target
			}
			c := switched(t, test.condition, test.files)
			manifest, err := c.Render(t.Context(), &shipper.ChartValues{"enabled": false}, on)
			if test.want != "" {
				if diff := cmp.Diff(failure{Reason: shipper.WrongChartDeployments, Message: test.want}, read(t, err)); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			prepared, failed := manifest.Prepare(on)
			hooks, wrong := manifest.Hooks(on)
			if len(prepared)+len(hooks) > 0 || failed != nil || wrong != nil || manifest.Replicas() != 0 {
				t.Errorf("it prepares %v and %v (%v, %v), %d Pods", names(prepared), names(hooks), failed, wrong, manifest.Replicas())
			}
		})
	}
}

func TestNothingIsNoPods(t *testing.T) {
	c := switched(t, ".Values.enabled", nil)
	rel := &shipper.Release{}
	rel.Name, rel.Labels = "web-0", map[string]string{shipper.AppLabel: "web"}
	rel.Spec.Environment.Values = &shipper.ChartValues{"enabled": true}
	rel.Spec.Environment.ValuesPerCluster = []shipper.ValuesFor{{Name: "west", Values: &shipper.ChartValues{"enabled": false}}}
	got := map[string]int32{}
	for _, cluster := range []string{"west", "east"} {
		var err error
		layers := values.LayersOf(&rel.Spec.Environment)
		if got[cluster], err = c.Replicas(t.Context(), rel, layers, render.Cluster{Place: values.Place{Cluster: cluster}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]int32{"west": 0, "east": 1}, got); diff != "" {
		t.Error(diff)
	}
}
