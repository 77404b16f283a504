// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// target is the release that tests render for.
var target = render.Target{
	ReleaseName: "super-6f19aa85-0", Namespace: "shop", App: "super",
	Labels: map[string]string{"shipper-release-hash": "6f19aa85", "team": "web"},
}

// What a chart of the tests is made of, unless a test has it otherwise.
const (
	metadata   = "apiVersion: v2\nname: sample\nversion: 1.2.3\n"
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec: {template: {spec: {containers: [{name: a, image: nginx}]}}}
`
	service = `apiVersion: v1
kind: Service
metadata: {name: sample}
`
)

// sample makes a chart of one Deployment and one Service and the files given; an empty one is left out.
func sample(t *testing.T, files map[string]string) *render.Chart {
	t.Helper()
	all := map[string]string{"Chart.yaml": metadata, "templates/deployment.yaml": deployment, "templates/service.yaml": service}
	for name, content := range files {
		all[name] = content
		if content == "" {
			delete(all, name)
		}
	}
	packed, err := charts.PackFiles("sample", "1.2.3", all)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := render.Open(packed.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// opened is one of the charts in test/charts.
func opened(t *testing.T, name, version string) *render.Chart {
	t.Helper()
	loaded, err := render.Open(archive(t, name, version).Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func renderTarget(t *testing.T, c *render.Chart, values shipper.ChartValues) render.Manifest {
	t.Helper()
	m, err := c.Render(t.Context(), &values, target)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names lists objects as kind/name.
func names(objects []unstructured.Unstructured) []string {
	var list []string
	for _, o := range objects {
		list = append(list, o.GetKind()+"/"+o.GetName())
	}
	return list
}

func TestRenderCharts(t *testing.T) {
	tests := map[string]struct {
		version string
		want    []string
		failure string
	}{
		"test-nginx": {version: "0.0.2", want: []string{"Service/test-nginx-prod", "Deployment/super-6f19aa85-0-test-nginx"}},
		"nginx":      {version: "0.0.2", want: []string{"Service/nginx", "Deployment/super-6f19aa85-0-nginx"}},
		"configmap":  {want: []string{"ConfigMap/configmap-settings", "Service/configmap", "Deployment/super-6f19aa85-0-configmap"}},
		"cluster-scoped": {want: []string{
			"ClusterRole/cluster-scoped-reader", "Service/cluster-scoped", "Deployment/super-6f19aa85-0-cluster-scoped",
		}},
		"unknown-kind": {want: []string{"Service/unknown-kind", "Deployment/super-6f19aa85-0-unknown-kind", "Gadget/unknown-kind"}},
		"no-deployment": {
			failure: `WrongChartDeployments: chart "no-deployment" 0.0.1: it must have exactly one Deployment, but 0 are found`,
		},
		"two-deployments": {
			failure: `WrongChartDeployments: chart "two-deployments" 0.0.1: it must have exactly one Deployment, but 2 are found ` +
				`(super-6f19aa85-0-two-deployments, super-6f19aa85-0-second)`,
		},
		"broken-template": {
			failure: `ChartError: chart "broken-template" 0.0.1: it does not render: broken-template/templates/broken.yaml:4:20: ` +
				`executing "broken-template/templates/broken.yaml" at <{{template "no-such-template" .}}>: template "no-such-template" not defined`,
		},
		"hook": {
			failure: `ChartError: chart "hook" 0.0.1: template hook/templates/migrate.yaml: Job "super-6f19aa85-0-migrate" is a Helm hook ` +
				`(pre-install,post-erase), and Shipper does not run "post-erase"; switch it off by the chart's values, or take the ` +
				`annotation helm.sh/hook away to install it like any other object`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			version := test.version
			if version == "" {
				version = "0.0.1"
			}
			m, err := opened(t, name, version).Render(t.Context(), nil, target)
			if test.failure != "" {
				got := read(t, err)
				if diff := cmp.Diff(test.failure, got.Reason+": "+got.Message); diff != "" || got.Retry {
					t.Error(diff, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(m.Objects)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	config := func(body string) map[string]string { return map[string]string{"templates/x.yaml": body} }
	many := strings.Builder{}
	for i := range 5001 {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"no kind": {
			config("apiVersion: v1\nmetadata: {name: a}\n"),
			`template sample/templates/x.yaml renders an object without kind`,
		},
		"no apiVersion": {config("kind: Secret\n"), `template sample/templates/x.yaml renders an object without apiVersion`},
		"odd apiVersion": {
			config("apiVersion: a/b/c\nkind: Secret\n"),
			`template sample/templates/x.yaml: Secret has the apiVersion "a/b/c", which is none`,
		},
		"no name": {config("apiVersion: v1\nkind: Secret\n"), `template sample/templates/x.yaml: Secret has no metadata.name`},
		"text":    {config("hello\n"), `template sample/templates/x.yaml renders to "hello", which is not an object`},
		"a list":  {config("- a\n"), `template sample/templates/x.yaml renders to "[a]", which is not an object`},
		"broken YAML": {
			config("a: b: c\n"),
			`template sample/templates/x.yaml does not render to YAML: yaml: mapping values are not allowed in this context`,
		},
		"broken CRD": {
			map[string]string{"crds/x.yaml": "a: b: c\n"},
			`template sample/crds/x.yaml does not render to YAML: yaml: mapping values are not allowed in this context`,
		},
		"item without kind": {
			config("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]\n"),
			`template sample/templates/x.yaml renders an object without kind`,
		},
		"labels with a number": {
			config("apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {version: 1}}\n"),
			`template sample/templates/x.yaml: Secret "a": metadata.labels.version is 1, which is not a string: quote it`,
		},
		"annotations that are a list": {
			config("apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: [1]}\n"),
			`template sample/templates/x.yaml: Secret "a": metadata.annotations is not a map`,
		},
		"metadata that is text": {
			config("apiVersion: v1\nkind: Secret\nmetadata: hello\n"), `template sample/templates/x.yaml: Secret has no metadata.name`,
		},
		"an object twice": {
			config("apiVersion: v1\nkind: Service\nmetadata: {name: sample}\n"),
			`template sample/templates/service.yaml: Service "sample" is rendered twice, by template sample/templates/x.yaml too`,
		},
		"a hook that is also installed": {
			config("apiVersion: v1\nkind: Service\nmetadata: {name: sample, annotations: {helm.sh/hook: pre-install}}\n"),
			`template sample/templates/service.yaml: Service "sample" is rendered twice, by template sample/templates/x.yaml too`,
		},
		"a hook of a moment that is none": {
			config("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: \"test, at-noon\"}}\n"),
			`template sample/templates/x.yaml: Pod "a" is a Helm hook (test, at-noon), and Shipper does not run "at-noon"; switch it off by ` +
				`the chart's values, or take the annotation helm.sh/hook away to install it like any other object`,
		},
		"a hook whose timeout is none": {
			config("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: test, shipper.booking.com/hook-timeout: soon}}\n"),
			`template sample/templates/x.yaml: Pod "a" has the annotation shipper.booking.com/hook-timeout: "soon", which is not a duration ` +
				`between 1ns and 24h; write one like 10m`,
		},
		"too many objects": {config(many.String()), `it renders to 5003 objects, more than the 5000 that are accepted`},
		"too much text": {
			config(`{{ range until 400 }}# {{ repeat 50000 "x" }}{{ "\n" }}{{ end }}`),
			`it does not render: out of bounds: a template renders to more than 16 MiB`,
		},
		"a template that would end the process": {
			config(`{{ $_ := set .Values "self" .Values }}{{ .Values }}`), `it does not render: sample/templates/x.yaml:1:41: ` +
				`out of bounds: printing is given a value that is larger than 8 MiB or nested more than 200 deep`,
		},
		"a template that fails on purpose": {
			config(`{{ fail "set the password" }}`), `it does not render: sample/templates/x.yaml:1:3: set the password`,
		},
		"a template that cannot be parsed": {
			config(`{{ if }}`),
			`it does not render: sample/templates/x.yaml:1: missing value for if`,
		},
		"replicas that are text": {
			map[string]string{"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: many}\n"},
			`template sample/templates/deployment.yaml: Deployment "d": spec.replicas is "many", which is not a number of Pods`,
		},
		"negative replicas": {
			map[string]string{"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: -1}\n"},
			`template sample/templates/deployment.yaml: Deployment "d": spec.replicas is "-1", which is not a number of Pods`,
		},
		"a spec that is text": {
			map[string]string{"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: text\n"},
			`template sample/templates/deployment.yaml: Deployment "d" has no spec that is a map`,
		},
		"a library": {
			map[string]string{"Chart.yaml": metadata + "type: library\n"},
			`it is a library, which has nothing to install`,
		},
		"a newer Kubernetes": {
			map[string]string{"Chart.yaml": metadata + "kubeVersion: \">=1.99\"\n"},
			`it requires Kubernetes >=1.99, and this cluster has v1.31.2-gke.7`,
		},
		"a subchart not there": {
			map[string]string{"Chart.yaml": metadata + "dependencies: [{name: sub, version: \"1\"}]\n"},
			"its dependency \"sub\" is not in its archive; run `helm dependency build` before packing it",
		},
		"values against the schema": {
			map[string]string{"values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`, "values.yaml": "replicas: three\n"},
			"the values do not fit the schema of sample: - at '/replicas': got string, want integer",
		},
		"a schema that reads files": {
			map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
			`the values do not fit the schema of sample: failing loading "file:///etc/passwd": a schema may refer to nothing but itself`,
		},
		"a schema that is none": {
			map[string]string{"values.schema.json": `hello`},
			"the values do not fit the schema of sample: invalid character 'h' looking for beginning of value",
		},
		"a schema that is only itself": {
			map[string]string{"values.schema.json": `{"allOf": [{"$ref": "#"}]}`},
			"the values do not fit the schema of sample: ",
		},
		"a schema of the wrong kind": {
			map[string]string{"values.schema.json": `{"type": 7}`},
			"the values do not fit the schema of sample: \"shipper:values.schema.json#\" is not valid against metaschema",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			on := target
			on.KubeVersion = "v1.31.2-gke.7"
			_, err := sample(t, test.files).Render(t.Context(), nil, on)
			got := read(t, err)
			message := strings.TrimPrefix(got.Message, `chart "sample" 1.2.3: `)
			if !strings.HasPrefix(message, test.want) || got.Reason != "ChartError" || got.Retry {
				t.Errorf("got  %s: %s\nwant %s", got.Reason, message, test.want)
			}
		})
	}
}

// everything is a chart that uses what charts may use.
var everything = map[string]string{
	"Chart.yaml": metadata + "kubeVersion: \">=1.30\"\n" +
		"dependencies: [{name: sub, version: \"1\", condition: sub.enabled, import-values: [data]}, " +
		"{name: spare, version: \"1\", condition: spare.enabled}]\n",
	"values.yaml":                        "greeting: hello\nsub: {size: 1}\nspare: {enabled: false}\n",
	"charts/spare/Chart.yaml":            "apiVersion: v2\nname: spare\nversion: 1.0.0\n",
	"charts/spare/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: spare}\n",
	"charts/sub/Chart.yaml":              "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
	"charts/sub/values.yaml":             "size: 0\nexports: {data: {imported: true}}\n",
	"charts/sub/values.schema.json":      `{"properties": {"size": {"type": "integer"}}}`,
	"charts/sub/templates/secret.yaml":   "apiVersion: v1\nkind: Secret\nmetadata: {name: \"s{{ .Values.size }}\"}\n",
	"charts/sub/crds/crd.yml": "# only a comment\n---\n" +
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: crd}\n",
	"templates/_partial.yaml":  "not: rendered",
	"templates/NOTES.txt":      "Hello {{ .Release.Name }}",
	"templates/empty.yaml":     "{{ if false }}\nx\n{{ end }}---\n# nothing\n---\n{}\n",
	"templates/tests/test.yml": "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: \"test-success, test\"}}\n",
	"templates/hook.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: old, annotations: {helm.sh/hook: crd-install}}\n",
	"templates/list.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ServiceAccount, metadata: {name: in-list}}\n-\n",
	"templates/lists.yaml": "apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\n" +
		"items:\n{{ range .Values.none }}- {}{{ end }}\n" +
		"---\napiVersion: v1\nkind: List\n---\napiVersion: v1\nkind: ConfigMapList\nitems:\n",
	"templates/allow.json": `{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "not-a-list"}}`,
	"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: all}
data:
  release: {{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Service }} {{ .Release.Revision }} {{ .Release.IsInstall }}
  cluster: {{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.KubeVersion.Minor }}
  apis: {{ .Capabilities.APIVersions.Has "example.com/v1/Gadget" }} {{ .Capabilities.APIVersions.Has "apps/v1" }}
  values: {{ .Values.greeting }} {{ .Values.imported }} {{ .Values.big }} {{ .Values.nothing }}
  spoilt: n{{ set .Values "greeting" "spoilt" | len }}
  lookup: found {{ lookup "v1" "Secret" "" "" | len }}
`,
}

func TestRenderReadsWhatHelmReads(t *testing.T) {
	c := sample(t, everything)
	values := shipper.ChartValues{"big": int64(10_000_000), "sub": map[string]any{"size": int64(7)}}
	on := target
	on.KubeVersion, on.APIVersions = "v1.31.2-gke.7", []string{"v1", "example.com/v1/Gadget"}
	for range 2 {
		m, err := c.Render(t.Context(), &values, on)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"CustomResourceDefinition/crd", "ServiceAccount/in-list", "Secret/s7", "ConfigMap/all", "CustomResourceDefinition/old",
			"Service/sample", "Deployment/super-6f19aa85-0", "AllowList/not-a-list",
		}
		if diff := cmp.Diff(want, names(m.Objects)); diff != "" {
			t.Error(diff)
		}
		data, _, err := unstructured.NestedStringMap(m.Objects[3].Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		wantData := map[string]string{
			"release": "super-6f19aa85-0 shop Helm 1 true", "cluster": "v1.31.2-gke.7 1 31", "apis": "true false",
			"values": "hello true 10000000", "spoilt": "n5", "lookup": "found 0",
		}
		if diff := cmp.Diff(wantData, data); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(shipper.ChartValues{"big": int64(10_000_000), "sub": map[string]any{"size": int64(7)}}, values); diff != "" {
		t.Errorf("the caller's values changed: %s", diff)
	}
}

func TestRenderLeavesTheChartAsItWas(t *testing.T) {
	c := sample(t, everything)
	want := names(renderTarget(t, c, nil).Objects)
	without := names(renderTarget(t, c, shipper.ChartValues{"sub": map[string]any{"enabled": false}}).Objects)
	if len(without) != len(want)-2 {
		t.Errorf("without its subchart it renders %v", without)
	}
	if diff := cmp.Diff(want, names(renderTarget(t, c, nil).Objects)); diff != "" {
		t.Error(diff)
	}
}

func TestRenderForAClusterThatIsNotKnown(t *testing.T) {
	c := sample(t, map[string]string{"templates/x.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Capabilities.KubeVersion.Minor }}-{{ .Capabilities.APIVersions.Has "apps/v1" }}"}
`, "Chart.yaml": metadata + "kubeVersion: <1.20\n"})
	if got := names(renderTarget(t, c, nil).Objects)[0]; got != "ConfigMap/37-true" {
		t.Error(got)
	}
	odd := target
	odd.KubeVersion = "new"
	_, err := c.Render(t.Context(), nil, odd)
	if got := read(t, err).Message; got != `chart "sample" 1.2.3: the cluster's version "new" is not one of Kubernetes` {
		t.Error(got)
	}
}

func TestRenderRefusesHugeValues(t *testing.T) {
	c := sample(t, nil)
	for name, values := range map[string]shipper.ChartValues{
		"10 MB in one string": {"a": strings.Repeat("x", 10<<20)},
		"10 MB in a list":     {"a": manyStrings(), "b": manyStrings()},
		"10 MB in maps":       {"a": map[string]any{"a": manyStrings()}, "b": map[string]any{"a": manyStrings()}},
	} {
		_, err := c.Render(t.Context(), &values, target)
		if got := read(t, err); got.Message != "the values take more than the 4 MiB that are accepted" || got.Retry {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func manyStrings() []any {
	var list []any
	for range 5 << 10 {
		list = append(list, strings.Repeat("x", 1<<10))
	}
	return list
}

func TestRenderIsSafeForConcurrentUse(t *testing.T) {
	c := sample(t, everything)
	want := renderTarget(t, c, nil)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			got, err := c.Render(t.Context(), nil, target)
			if diff := cmp.Diff(want.Objects, got.Objects); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	callers.Wait()
}

func TestRenderEndsWithTheCaller(t *testing.T) {
	slow := sample(t, map[string]string{"templates/x.yaml": "{{ range 1000000 }}{{ end }}"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := slow.Render(ctx, nil, target)
	got := read(t, err)
	want := failure{"ChartError", `chart "sample" 1.2.3: it did not render in time`, true}
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(diff, err)
	}
	renderTarget(t, sample(t, nil), nil) // others go on
}

func TestReplicas(t *testing.T) {
	tests := map[string]int32{"{}": 1, "{replicas: null}": 1, "{replicas: 0}": 0, "{replicas: 12}": 12, "null": 1}
	for spec, want := range tests {
		c := sample(t, map[string]string{
			"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: " + spec + "\n",
		})
		if got := renderTarget(t, c, nil).Replicas(); got != want {
			t.Errorf("with spec %s there are %d replicas, want %d", spec, got, want)
		}
	}
	for name, objects := range map[string][]unstructured.Unstructured{
		"no Deployment": {{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}},
		"odd replicas": {{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(-1)},
		}}},
	} {
		if got := (render.Manifest{Objects: objects}).Replicas(); got != 1 {
			t.Errorf("%s: %d replicas", name, got)
		}
	}
}
