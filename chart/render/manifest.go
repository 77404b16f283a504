// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/duplicates"
)

// maxObjects bounds the objects of a chart.
const maxObjects = 5000

// Manifest is the rendered chart.
type Manifest struct {
	// Objects are in Helm's install order, the CustomResourceDefinitions of the chart's crds folder first.
	Objects []unstructured.Unstructured
	// sources names the template of each object; empty where the Manifest was not made by Render.
	sources []string
	// hooks are the objects that Helm runs instead of installing them, and hookSources their templates.
	hooks       []unstructured.Unstructured
	hookSources []string
	// naming is ByApplication if it was rendered that way.
	naming shipper.ChartNaming
	// warnings say what of the objects is not installed as the chart has it.
	warnings []string
}

// Warnings say what of the objects is not installed as the chart has it.
func (m Manifest) Warnings() []string { return m.warnings }

// source names an object for messages, with the template it came from.
func (m Manifest) source(i int) string {
	o := &m.Objects[i]
	what := fmt.Sprintf("%s %q", o.GetKind(), o.GetName())
	if i < len(m.sources) && m.sources[i] != "" {
		return fmt.Sprintf("template %s: %s", m.sources[i], what)
	}
	return what
}

// assemble parses rendered files into objects in install order.
func assemble(ctx context.Context, c *helmchart.Chart, files map[string]string, t Target) (Manifest, error) {
	var definitions, manifest Manifest
	for _, crd := range c.CRDObjects() {
		if err := definitions.add(crd.Filename, string(crd.File.Data)); err != nil {
			return Manifest{}, err
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if isManifest(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if err := manifest.add(name, files[name]); err != nil {
			return Manifest{}, err
		}
	}
	manifest.sort()
	manifest.Objects = append(definitions.Objects, manifest.Objects...)
	manifest.sources = append(definitions.sources, manifest.sources...)
	if n := len(manifest.Objects) + len(manifest.hooks); n > maxObjects {
		return Manifest{}, chartError("it renders to %d objects, more than the %d that are accepted", n, maxObjects)
	}
	if err := manifest.checkUnique(); err != nil {
		return Manifest{}, err
	}
	if err := manifest.override(ctx, t); err != nil {
		return Manifest{}, err
	}
	if err := manifest.removeDuplicates(); err != nil {
		return Manifest{}, err
	}
	manifest.warnOfPaused()
	return manifest, nil
}

// removeDuplicates removes what server-side apply refuses in lists of the objects. Hooks are created, and keep it.
func (m *Manifest) removeDuplicates() error {
	all, found := duplicates.Remove(m.Objects)
	var refused []string
	for _, f := range found {
		if text := fmt.Sprintf("%s: %s", m.source(f.Object), f.Text); f.Refused {
			refused = append(refused, text)
		} else {
			m.warnings = append(m.warnings, text)
		}
	}
	if len(refused) > 0 {
		return chartError("%s", strings.Join(capped(refused), "; "))
	}
	m.warnings = capped(m.warnings)
	m.Objects = all
	return nil
}

// maxFindings bounds what is said of the lists of a chart: the API server cuts off the warnings of a request at 4 KiB.
const maxFindings = 8

// capped are the first findings, and how many more there are.
func capped(findings []string) []string {
	if more := len(findings) - maxFindings; more > 0 {
		return append(findings[:maxFindings:maxFindings], fmt.Sprintf("at least %d more lists have elements of one key", more))
	}
	return findings
}

// warnOfPaused warns of Deployments that never get Pods as they are.
func (m *Manifest) warnOfPaused() {
	for i := range m.Objects {
		paused, _, _ := unstructured.NestedBool(m.Objects[i].Object, "spec", "paused")
		if paused && m.Objects[i].GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
			m.warnings = append(m.warnings, m.source(i)+" is paused, so Kubernetes creates no Pods of it: leave spec.paused out of the chart")
		}
	}
}

// isManifest reports whether a file contains objects. NOTES and the like are for users.
func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(path.Base(name), "_")
	default:
		return false
	}
}

// add parses the documents of one file.
func (m *Manifest) add(source, content string) error {
	documents := releaseutil.SplitManifests(content)
	order := make([]string, 0, len(documents))
	for key := range documents {
		order = append(order, key)
	}
	sort.Sort(releaseutil.BySplitManifestsOrder(order))
	for _, key := range order {
		asJSON, err := yaml.YAMLToJSON([]byte(documents[key]))
		if err != nil {
			return chartError("template %s does not render to YAML: %s", source, chart.Shorten(err.Error()))
		}
		var document any
		if err := json.Unmarshal(asJSON, &document); err != nil {
			return chartError("template %s does not render to YAML: %s", source, chart.Shorten(err.Error()))
		}
		if err := m.addDocument(source, document); err != nil {
			return err
		}
	}
	return nil
}

// addDocument adds an object, or each of a list of objects.
func (m *Manifest) addDocument(source string, document any) error {
	if document == nil {
		return nil
	}
	fields, ok := document.(map[string]any)
	if !ok {
		return chartError("template %s renders to %q, which is not an object", source, chart.Shorten(fmt.Sprint(document)))
	}
	if len(fields) == 0 {
		return nil
	}
	object := unstructured.Unstructured{Object: fields}
	if items, isList := fields["items"].([]any); isList && strings.HasSuffix(object.GetKind(), "List") {
		for _, item := range items {
			if err := m.addDocument(source, item); err != nil {
				return err
			}
		}
		return nil
	}
	if chart.IsEmptyList(&object) {
		return nil
	}
	if err := checkIdentity(source, &object); err != nil {
		return err
	}
	if isHook, err := m.addHook(source, &object); isHook || err != nil {
		return err
	}
	m.Objects = append(m.Objects, object)
	m.sources = append(m.sources, source)
	return nil
}

// checkIdentity requires apiVersion, kind and name, and metadata of the right types.
func checkIdentity(source string, o *unstructured.Unstructured) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if value, _, err := unstructured.NestedString(o.Object, field); err != nil || value == "" {
			return chartError("template %s renders an object without %s", source, field)
		}
	}
	if gv, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil || gv.Version == "" {
		return chartError("template %s: %s has the apiVersion %q, which is none",
			source, o.GetKind(), chart.Shorten(o.GetAPIVersion()))
	}
	if o.GetName() == "" {
		return chartError("template %s: %s has no metadata.name", source, o.GetKind())
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := stringsOnly(o.Object, "metadata", field); err != nil {
			return chartError("template %s: %s %q: %s", source, o.GetKind(), chart.Shorten(o.GetName()), err)
		}
	}
	return nil
}

// stringsOnly requires that a field is absent or a map of strings: unquoted numbers and booleans would be lost silently.
func stringsOnly(object map[string]any, fields ...string) error {
	where := strings.Join(fields, ".")
	value, found, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil {
		return fmt.Errorf("%s is not where it should be", where)
	}
	if !found || value == nil {
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not a map", where)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := entries[key].(string); !ok {
			return fmt.Errorf("%s.%s is %v, which is not a string: quote it",
				where, chart.Shorten(key), chart.Shorten(fmt.Sprint(entries[key])))
		}
	}
	return nil
}

// sort sorts the objects into Helm's install order; it is stable within a kind.
func (m *Manifest) sort() {
	rank := make(map[string]int, len(releaseutil.InstallOrder))
	for i, kind := range releaseutil.InstallOrder {
		rank[kind] = i + 1
	}
	order := make([]int, len(m.Objects))
	for i := range order {
		order[i] = i
	}
	last := len(rank) + 1
	slices.SortStableFunc(order, func(a, b int) int {
		kindA, kindB := m.Objects[a].GetKind(), m.Objects[b].GetKind()
		rankA, rankB := cmp.Or(rank[kindA], last), cmp.Or(rank[kindB], last)
		return cmp.Or(cmp.Compare(rankA, rankB), strings.Compare(kindA, kindB))
	})
	sorted := Manifest{hooks: m.hooks, hookSources: m.hookSources}
	for _, i := range order {
		sorted.Objects = append(sorted.Objects, m.Objects[i])
		sorted.sources = append(sorted.sources, m.sources[i])
	}
	*m = sorted
}

// checkUnique refuses a chart that renders one object twice: the second would overwrite the first. If one of them is a hook,
// running it would delete the other.
func (m Manifest) checkUnique() error {
	type identity struct{ group, kind, namespace, name string }
	all := Manifest{Objects: slices.Concat(m.Objects, m.hooks), sources: slices.Concat(m.sources, m.hookSources)}
	first := make(map[identity]int, len(all.Objects))
	for i := range all.Objects {
		o := &all.Objects[i]
		id := identity{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
		if j, twice := first[id]; twice {
			return chartError("%s is rendered twice, by template %s too", all.source(j), all.sources[i])
		}
		first[id] = i
	}
	return nil
}
