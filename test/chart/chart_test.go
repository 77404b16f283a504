// SPDX-License-Identifier: Apache-2.0

// Package chart proves that the Helm chart and the overlays of kustomize install the same: both are rendered by the libraries of
// their tools, and the objects are compared whole.
package chart

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"
)

const manifests = "../../manifests"

// objects reads what a tool has rendered, by kind, namespace and name.
func objects(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if out[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		out[key] = o.Object
	}
}

// kustomized renders a kustomization whose text is that of a file beside the overlays.
func kustomized(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	err := filepath.WalkDir(manifests, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(manifests, path)
		if err != nil {
			return err
		}
		return fs.WriteFile(filepath.Join("/manifests", name), file)
	})
	if err != nil {
		t.Fatal(err)
	}
	const folder = "/manifests/overlays/yours"
	if err := fs.WriteFile(folder+"/kustomization.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, out)
}

// render renders the chart as Helm does when it installs it.
func render(t *testing.T, values string) (map[string]map[string]any, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(manifests, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "shipper", Namespace: "shipper-system", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString("\n---\n" + file)
	}
	return objects(t, []byte(text.String())), nil
}

// kept takes the annotation away by which Helm keeps an object when the chart is uninstalled: the one thing that kustomize does not
// write. It reports which objects had it.
func kept(all map[string]map[string]any) (keys map[string]bool) {
	keys = map[string]bool{}
	for key, o := range all {
		annotations, _, _ := unstructured.NestedStringMap(o, "metadata", "annotations")
		if annotations["helm.sh/resource-policy"] != "keep" {
			continue
		}
		keys[key] = true
		unstructured.RemoveNestedField(o, "metadata", "annotations", "helm.sh/resource-policy")
		if len(annotations) == 1 {
			unstructured.RemoveNestedField(o, "metadata", "annotations")
		}
	}
	return keys
}

func TestTheChartInstallsWhatTheOverlaysInstall(t *testing.T) {
	for sentence, tc := range map[string]struct{ values, kustomization string }{
		"without values it is the default": {"", "resources: [../default]\n"},
		"three replicas on three hosts are ha": {
			"{replicas: 3, spreadOverHosts: DoNotSchedule}", "resources: [../ha]\n",
		},
		"certificates by cert-manager": {"certManager: {enabled: true}", "resources: [../cert-manager]\n"},
		"the network":                  {"networkPolicy: {enabled: true}", "resources: [../default]\ncomponents: [../../network]\n"},
		"what Prometheus needs":        {"monitoring: {enabled: true}", "resources: [../default]\ncomponents: [../../monitoring]\n"},
		"an image of yours": {
			"image: registry.example.com/shipper:v0.1.0",
			"resources: [../default]\nimages:\n- {name: shipper, newName: registry.example.com/shipper, newTag: v0.1.0}\n",
		},
		"flags and resources of both containers": {`
webhook: {args: [--log-level=1], resources: {limits: {memory: 1Gi}, requests: null}}
reconciler: {args: [--workers=16, --log-level=1], resources: {limits: {memory: 4Gi}}}
`, `
resources: [../default]
patches:
- target: {kind: Deployment, name: shipper}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --log-level=1}
    - {op: replace, path: /spec/template/spec/containers/0/resources, value: {limits: {memory: 1Gi}}}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --workers=16}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --log-level=1}
    - {op: replace, path: /spec/template/spec/containers/1/resources/limits/memory, value: 4Gi}
`},
		"servers that Checks may name, and their namespace, for both containers": {`
outgoingURLs: ["https://judge.example.com", "http://*:9090"]
sharedChecksNamespace: checks
webhook: {args: [--log-level=1]}
reconciler: {args: [--workers=16]}
`, `
resources: [../default]
patches:
- target: {kind: Deployment, name: shipper}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--outgoing-urls=https://judge.example.com,http://*:9090"}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --shared-checks-namespace=checks}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --log-level=1}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: "--outgoing-urls=https://judge.example.com,http://*:9090"}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --shared-checks-namespace=checks}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --workers=16}
`},
		"a time that clusters may be not ready, for both containers": {`unhealthyAfter: 10m`, `
resources: [../default]
patches:
- target: {kind: Deployment, name: shipper}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --unhealthy-after=10m}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: --unhealthy-after=10m}
`},
		"what may be placed, for both containers": {`
resources: {unplaceableKinds: [Secret, "*.example.com"], unplaceableNamespaces: ["team-*"]}
`, `
resources: [../default]
patches:
- target: {kind: Deployment, name: shipper}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--unplaceable-kinds=Secret,*.example.com"}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--unplaceable-namespaces=team-*"}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: "--unplaceable-kinds=Secret,*.example.com"}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: "--unplaceable-namespaces=team-*"}
`},
		"no shared Checks": {`sharedChecksNamespace: ""`, `
resources: [../default]
patches:
- target: {kind: Deployment, name: shipper}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--shared-checks-namespace="}
    - {op: add, path: /spec/template/spec/containers/1/args/-, value: "--shared-checks-namespace="}
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := kustomized(t, tc.kustomization)
			got, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) < 20 {
				t.Fatalf("the chart has %d objects", len(got))
			}
			keys := kept(got)
			for key := range got {
				mustStay := strings.HasPrefix(key, "CustomResourceDefinition ") || strings.HasPrefix(key, "Namespace ")
				if keys[key] != mustStay {
					t.Errorf("%s stays when the chart is uninstalled: %v, and should: %v", key, keys[key], mustStay)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("overlay and chart (-overlay +chart):\n" + diff)
			}
		})
	}
}

// TestAGateThatStandsOpenWhenItIsDown is apart: a kustomization would have to name every webhook that says Fail.
func TestAGateThatStandsOpenWhenItIsDown(t *testing.T) {
	want := kustomized(t, "resources: [../default]\n")
	opened := 0
	for _, o := range want {
		webhooks, _ := o["webhooks"].([]any)
		for _, w := range webhooks {
			webhook := w.(map[string]any)
			always := webhook["name"] == "envelope.shipper.booking.com" || webhook["name"] == "resourcesnapshot.shipper.booking.com"
			if webhook["failurePolicy"] == "Fail" && !always {
				webhook["failurePolicy"] = "Ignore"
				opened++
			}
		}
	}
	if opened == 0 {
		t.Fatal("no webhook says Fail")
	}
	got, err := render(t, "failurePolicy: Ignore")
	if err != nil {
		t.Fatal(err)
	}
	kept(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("overlay and chart (-overlay +chart):\n" + diff)
	}
}

func TestTheChartRefusesValuesThatItDoesNotKnow(t *testing.T) {
	for sentence, values := range map[string]string{
		"a value that is none":              "replicaCount: 3",
		"a value of a part that is none":    "certManager: {issuer: mine}",
		"a failurePolicy that is none":      "failurePolicy: fail",
		"an image in parts":                 "image: {repository: shipper, tag: latest}",
		"flags that are not a list":         "webhook: {args: --log-level=1}",
		"what to do without a further host": "spreadOverHosts: Never",
		"a kind that is not one":            "resources: {placeableKinds: [configmaps]}",
		"servers that are not a list":       "outgoingURLs: https://judge.example.com",
		"two servers in one item":           `outgoingURLs: ["https://a.example.com,https://b.example.com"]`,
		"a server without a scheme":         "outgoingURLs: [judge.example.com]",
		"a time without a unit":             "unhealthyAfter: \"300\"",
		"a namespace of no name":            "sharedChecksNamespace: Checks",
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := render(t, values); err == nil {
				t.Errorf("%s is taken", values)
			}
		})
	}
}
