// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

// likeHelm is a Target that sees what a first `helm install shop` in namespace team sees.
var likeHelm = render.Target{
	Naming: shipper.NamingByApplication, ReleaseName: "shop-1", App: "shop", Namespace: "team", KubeVersion: "v1.33.1",
}

// byHelm is what `helm install` would install of a chart, in its order, and the hooks: loaded, rendered, split and sorted by Helm alone.
func byHelm(t *testing.T, of charts.Archive, values map[string]any) (objects, hooks []unstructured.Unstructured) {
	t.Helper()
	c, err := loader.LoadArchive(bytes.NewReader(of.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		t.Fatal(err)
	}
	version, err := chartutil.ParseKubeVersion(likeHelm.KubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	on := chartutil.DefaultCapabilities.Copy()
	on.KubeVersion = *version
	scope, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: likeHelm.App, Namespace: likeHelm.Namespace, Revision: 1, IsInstall: true}, on)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, scope)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	sortedHooks, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range c.CRDObjects() {
		objects = append(objects, documents(t, string(definition.File.Data))...)
	}
	for _, one := range sorted {
		objects = append(objects, documents(t, one.Content)...)
	}
	for _, one := range sortedHooks {
		hooks = append(hooks, documents(t, one.Manifest)...)
	}
	return objects, hooks
}

// documents are the objects of a YAML text, those of lists alone.
func documents(t *testing.T, text string) (out []unstructured.Unstructured) {
	t.Helper()
	parts := releaseutil.SplitManifests(text) // a map, by names that say the order
	for i := range len(parts) {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(parts[fmt.Sprintf("manifest-%d", i)]), &o.Object); err != nil {
			t.Fatal(err)
		}
		switch {
		case len(o.Object) == 0:
		case o.IsList():
			if err := o.EachListItem(func(item runtime.Object) error {
				out = append(out, *item.(*unstructured.Unstructured))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		default:
			out = append(out, o)
		}
	}
	return out
}

// TestPopularChartsAreWhatHelmInstalls opens, renders and sorts widely used charts, unedited, and compares each object with Helm's.
func TestPopularChartsAreWhatHelmInstalls(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		compareWithHelm(t, of.Archive, of.Values)
	})
}

func compareWithHelm(t *testing.T, of charts.Archive, values map[string]any) {
	t.Helper()
	c, err := render.Open(of.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	given := shipper.ChartValues(values)
	manifest, err := c.Render(t.Context(), &given, likeHelm)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := manifest.Hooks(likeHelm)
	if err != nil {
		t.Fatal(err)
	}
	want, wantHooks := byHelm(t, of, values)
	again, hooksAgain := byHelm(t, of, values)
	if diff := cmp.Diff(names(want), names(manifest.Objects)); diff != "" {
		t.Fatalf("objects in their order (-Helm +here):\n%s", diff)
	}
	both := comparison{}
	for n := range want {
		both.compare(names(want)[n], want[n].Object, again[n].Object, manifest.Objects[n].Object)
	}
	for _, all := range [][]unstructured.Unstructured{wantHooks, hooksAgain, hooks} {
		slices.SortFunc(all, func(a, b unstructured.Unstructured) int {
			return strings.Compare(a.GetKind()+a.GetName(), b.GetKind()+b.GetName())
		})
		for n := range all { // Shipper's labels are on them
			all[n].SetLabels(nil)
			unstructured.RemoveNestedField(all[n].Object, "spec", "ttlSecondsAfterFinished")
		}
	}
	if len(wantHooks) != len(hooks) {
		t.Fatalf("hooks %v, in Helm %v", names(hooks), names(wantHooks))
	}
	for n := range wantHooks { // names may be random
		both.compare("hook "+names(hooks)[n], wantHooks[n].Object, hooksAgain[n].Object, hooks[n].Object)
	}
	if len(both.different) > 0 || both.random*10 > both.same {
		t.Errorf("%d values are the same, %d random, and these differ:\n%s", both.same, both.random, strings.Join(both.different, "\n"))
	}
}

// comparison counts what is the same in two renderings.
type comparison struct {
	same, random int
	different    []string
}

// shortRandom is the length up to which random texts are passwords and the like. Keys of one kind differ in length by some bytes.
const shortRandom = 64

// compare compares what is here with what Helm renders. A text is random if Helm renders it in two ways; then only its length is compared,
// for a short one whose length is always the same in Helm.
func (c *comparison) compare(at string, once, again, here any) {
	switch first := once.(type) {
	case map[string]any:
		second, isMap := again.(map[string]any)
		third, hereIsMap := here.(map[string]any)
		keys := slices.Sorted(maps.Keys(first))
		if !isMap || !hereIsMap || !slices.Equal(keys, slices.Sorted(maps.Keys(second))) || !slices.Equal(keys, slices.Sorted(maps.Keys(third))) {
			c.leaf(at, once, again, here)
			return
		}
		for _, key := range keys {
			c.compare(at+"."+key, first[key], second[key], third[key])
		}
	case []any:
		second, isList := again.([]any)
		third, hereIsList := here.([]any)
		if !isList || !hereIsList || len(first) != len(second) || len(first) != len(third) {
			c.leaf(at, once, again, here)
			return
		}
		for n := range first {
			c.compare(fmt.Sprintf("%s[%d]", at, n), first[n], second[n], third[n])
		}
	default:
		c.leaf(at, once, again, here)
	}
}

func (c *comparison) leaf(at string, once, again, here any) {
	first, isText := once.(string)
	second, againIsText := again.(string)
	third, hereIsText := here.(string)
	switch {
	case cmp.Equal(once, again) && cmp.Equal(once, here):
		c.same++
	case !isText || !againIsText || !hereIsText || first == second,
		len(first) == len(second) && len(first) != len(third) && len(first) <= shortRandom:
		c.different = append(c.different, fmt.Sprintf("%s: in Helm %v, here %v", at, once, here))
	default:
		c.random++
	}
}

// TestTheComparisonWithHelmFindsDifferences: random are only texts that differ in Helm, too.
func TestTheComparisonWithHelmFindsDifferences(t *testing.T) {
	list := func(of ...any) map[string]any { return map[string]any{"list": of, "name": "a"} }
	for name, tc := range map[string]struct {
		once, again, here map[string]any
		want              comparison
	}{
		"the same":               {list("x"), list("x"), list("x"), comparison{same: 2}},
		"random in Helm":         {list("x"), list("y"), list("z"), comparison{same: 1, random: 1}},
		"random and longer here": {list("x"), list("y"), list("zz"), comparison{same: 1, different: []string{".list[0]: in Helm x, here zz"}}},
		"another text":           {list("x"), list("x"), list("y"), comparison{same: 1, different: []string{".list[0]: in Helm x, here y"}}},
		"a number for a text":    {list("1"), list("1"), list(int64(1)), comparison{same: 1, different: []string{".list[0]: in Helm 1, here 1"}}},
		"one more": {
			list("x"), list("x"), list("x", "y"), comparison{same: 1, different: []string{".list: in Helm [x], here [x y]"}},
		},
		"a field less": {
			list("x"), list("x"), map[string]any{"name": "a"}, comparison{different: []string{": in Helm map[list:[x] name:a], here map[name:a]"}},
		},
	} {
		var got comparison
		got.compare("", tc.once, tc.again, tc.here)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(comparison{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestFilesBesideManifestsAreTreatedAsByHelm: `helm package` leaves out what .helmignore names, and no reader of the archive looks there
// again. In crds, what is no manifest by its name is no object, as are documents without content.
func TestFilesBesideManifestsAreTreatedAsByHelm(t *testing.T) {
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.example.com}\n"
	of, err := charts.PackFiles("sample", "1.2.3", map[string]string{
		"Chart.yaml":   metadata + "dependencies: [{name: sub, version: 1.0.0, condition: sub.enabled}]\n",
		".helmignore":  "templates/ignored.yaml\n",
		"values.yaml":  "sub: {enabled: false}\n",
		"values.md":    "# Values",
		"crds/a.yaml":  "# a comment\n---\n" + fmt.Sprintf(definition, "a") + "---\n" + fmt.Sprintf(definition, "b") + "---\n",
		"crds/b.json":  `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c.example.com"}}`,
		"crds/c.yaml":  "# nothing\n",
		"crds/OWNERS":  "- ann",
		"crds/READ.md": "{{ no template }}", "crds/d/kustomization": "resources: [a.yaml]", "crds/e.yaml.orig": "a: b: c",
		"templates/NOTES.txt": "{{ .Release.Name }}: is installed: now", "templates/_a.yaml": "a: b: c",
		"templates/deployment.yaml": deployment, "templates/ignored.yaml": service, "templates/deep/er.yml": "# {{ .Release.Name }}\n",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/crds/x.yaml": fmt.Sprintf(definition, "x"),
		"charts/sub/templates/y.yaml": "{{ fail \"it is off\" }}", "charts/.hidden/x": "y",
	})
	if err != nil {
		t.Fatal(err)
	}
	compareWithHelm(t, of, map[string]any{})
}
