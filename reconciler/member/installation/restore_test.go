// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// generating are the templates of a chart that makes passwords and certificates each time, and looks nothing up.
var generating = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: generating\nversion: 0.0.1\n",
	"templates/secret.yaml": `{{ $ca := genCA "it" 30 }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {password: "{{ randAlphaNum 12 }}", ca: "{{ $ca.Cert | b64enc }}", key: "{{ $ca.Key | b64enc }}"}
`,
	"templates/db.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {made: "{{ randAlphaNum 12 }}"}}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db, envFrom: [{secretRef: {name: {{ .Release.Name }}}}]}]}
`,
	"templates/web.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, envFrom: [{secretRef: {name: {{ .Release.Name }}}}]}]}
`,
	"templates/migrate.yaml": `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install, made: "{{ randAlphaNum 12 }}"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: it, image: it}]}}}
`,
}

// ofRelease is a Release of the chart.
func ofRelease(name string) render.Target {
	return render.Target{
		Naming: shipper.NamingByApplication, ReleaseName: name, Namespace: "shop", App: "web",
		Labels: map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: name, shipper.ReleaseHashLabel: "6f19aa85"},
	}
}

// storedAs is what is stored of a rendering, read again.
func storedAs(t *testing.T, all []wanted) *storedRendering {
	t.Helper()
	packed, err := packAll(all)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	return &storedRendering{objects: objects}
}

// yamlOf is what is written, with the name of the Release as X.
func yamlOf(all []wanted, release string) (out []string) {
	for _, w := range all {
		out = append(out, strings.ReplaceAll(fmt.Sprint(w.content.Object), release, "web-X"))
	}
	return out
}

// TestARollbackHasWhatItsGoalWasRenderedTo: passwords and certificates come back, and Pods in place use what they used then.
func TestARollbackHasWhatItsGoalWasRenderedTo(t *testing.T) {
	archive, err := charts.PackFiles("generating", "0.0.1", generating)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := render.Open(archive.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendering{renderer: NewRenderer(packed{loaded}, nil, LoadTimeout)}
	first, err := r.render(t.Context(), Source{}, ofRelease("web-6f19aa85-0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	goal := storedAs(t, first)
	if !goal.known() || len(first) != 5 {
		t.Fatalf("what the chart rendered is known: %t, of %d objects", goal.known(), len(first))
	}
	again := func(in *storedRendering, use lots.InUse) []wanted {
		t.Helper()
		of := ofRelease("web-6f19aa85-1")
		of.InUse = use
		got, err := r.prepare(t.Context(), of, nil, func() (render.Manifest, error) { return in.manifest(), nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := yamlOf(first, "web-6f19aa85-0")
	if diff := cmp.Diff(want, yamlOf(again(goal, nil), "web-6f19aa85-1")); diff != "" {
		t.Errorf("but for names (-goal +rollback):\n%s", diff)
	}
	back := again(goal, goal.inUse("web"))
	set := func(all []wanted) map[string]any {
		n := slices.IndexFunc(all, func(w wanted) bool { return w.content.GetKind() == "StatefulSet" })
		return section(all[n].content, "spec")
	}
	if diff := cmp.Diff(set(first), set(back)); diff != "" {
		t.Errorf("the StatefulSet (-goal +rollback):\n%s", diff)
	}
	if diff := cmp.Diff(yamlOf(back, "web-6f19aa85-1"), yamlOf(again(storedAs(t, back), goal.inUse("web")), "web-6f19aa85-1")); diff != "" {
		t.Errorf("a rollback to the rollback (-goal +rollback):\n%s", diff)
	}
	if in := goal.inUse("others"); len(in) > 0 {
		t.Errorf("another Application uses %v", in)
	}

	for n := range first { // as versions of Shipper stored it that did not keep what the chart rendered
		first[n].given = nil
	}
	if storedAs(t, first).known() {
		t.Error("what the chart rendered is known, and was not stored")
	}
}

// TestWhatAChartRenderedIsLeftOutWhereItIsTooLarge: what is written has to be stored.
func TestWhatAChartRenderedIsLeftOutWhereItIsTooLarge(t *testing.T) {
	object := func(text string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": text}}
	}
	large := strings.Repeat("<", 6<<20)
	for text, known := range map[string]bool{"small": true, large: false} {
		all := []wanted{{given: object("given " + text)}}
		all[0].content = &unstructured.Unstructured{Object: object(text)}
		if stored := storedAs(t, all); stored.known() != known || !cmp.Equal(stored.objects[0].content, all[0].content) {
			t.Errorf("of %d bytes, what the chart rendered is stored: %t", len(text), !known)
		}
	}
}
