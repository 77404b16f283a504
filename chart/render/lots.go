// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/override"
	"shipper.dev/shipper/chart/values"
)

// Lots are the objects of a Manifest that was rendered by Application as they are to be written for t, each with what becomes of it. The
// error, a *chart.Error, names everything that cannot be rolled out.
func (m Manifest) Lots(t Target) (lots.Table, error) {
	table := lots.Of(m.Objects, lots.Release{App: t.App, Name: t.ReleaseName, InUse: t.InUse})
	for i := range table.Entries {
		if err := prepareEntry(&table.Entries[i], previewsOf(table, &table.Entries[i]), m.source(i), t); err != nil {
			table.Refused = append(table.Refused, err.Error())
		}
	}
	uses := map[string]lots.Use{}
	for _, s := range table.Services {
		uses[s.Name] = s.Use
	}
	for i := range table.Entries {
		if o := table.Entries[i].Object; o.GetAPIVersion() == "v1" && o.GetKind() == "Service" {
			if err := selectByService(o, uses[o.GetName()], t); err != nil {
				table.Refused = append(table.Refused, err.Error())
			}
		}
	}
	if len(table.Refused) > 0 {
		return table, chartError("%s", strings.Join(table.Refused, "; ")).WithPublic("it cannot be rolled out")
	}
	return table, nil
}

// maxWorkloads bounds Workloads: they are stored in an annotation.
const maxWorkloads = 200

// Workloads are those of a table, the first 200, in words for users.
func Workloads(t *lots.Table) []preview.Workload {
	var out []preview.Workload
	for _, e := range t.Workloads() {
		if len(out) < maxWorkloads {
			out = append(out, preview.Workload{Kind: e.Object.GetKind(), Name: e.Given, InPlace: e.Lot == lots.InPlace, Replicas: e.Replicas})
		}
	}
	return out
}

// LotsOf renders a Release whose objects are named by Application for a cluster. Errors are those of Render: what of the chart cannot be
// rolled out is in the table.
func (c *Chart) LotsOf(ctx context.Context, rel *shipper.Release, layers values.Layers, in Cluster) (lots.Table, error) {
	from, err := layers.At(in.Place)
	if err != nil {
		return lots.Table{}, err
	}
	t := targetOf(rel, in)
	manifest, err := c.Render(ctx, from, t)
	if override.Failed(err) {
		t.Overrides = nil
		manifest, err = c.Render(ctx, from, t)
	}
	if err != nil {
		return lots.Table{}, err
	}
	table, err := manifest.Lots(t)
	if len(table.Refused) > 0 {
		err = nil
	}
	return table, err
}

// prepareByApplication is Prepare for charts whose objects are named by Application.
func (m Manifest) prepareByApplication(t Target) ([]unstructured.Unstructured, error) {
	table, err := m.Lots(t)
	if err != nil {
		return nil, err
	}
	objects := table.Objects()
	out := make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = *o
	}
	return out, nil
}

// prepareEntry removes what is Shipper's from an object, and adds Shipper's labels. The labels of the chart win over those of the
// Application: its other objects select by them. previews are the preview Services that select its Pods, and what names the object.
func prepareEntry(e *lots.Entry, previews []string, what string, t Target) error {
	if err := checkNamespace(e.Object, what, t.Namespace); err != nil {
		return err
	}
	removeMarks(e.Object)
	if err := removeReserved(e.Object, what, t); err != nil {
		return err
	}
	if err := t.labelObject(e.Object); err != nil {
		return chartError("%s: %s", what, err)
	}
	if e.Copy != nil {
		e.Copy.SetLabels(t.marks())
	}
	annotate(e)
	if e.Lot != lots.SideBySide {
		return nil
	}
	switch e.Object.GetKind() {
	case "Deployment":
		return prepareSideBySide(e, previews, what, t)
	case "Job": // the API server gives it a selector of its own, as its name is its own
		unstructured.RemoveNestedField(e.Object.Object, "spec", "manualSelector")
		unstructured.RemoveNestedField(e.Object.Object, "spec", "selector")
	}
	return nil
}

// previewsOf are the preview Services that select the Pods of a Deployment.
func previewsOf(table lots.Table, e *lots.Entry) (names []string) {
	for _, s := range table.Services {
		if s.Use == lots.Preview && e.Lot == lots.SideBySide && slices.Contains(s.SideBySide, e.Given) {
			names = append(names, s.Name)
		}
	}
	return names
}

// annotate says on a workload how many Pods it has at full capacity, and whether it changes in place.
func annotate(e *lots.Entry) {
	annotations := e.Object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch e.Object.GetKind() {
	case "Deployment", "StatefulSet":
		annotations[shipper.ReplicasAnnotation] = strconv.Itoa(int(e.Replicas))
	case "DaemonSet":
	default:
		return
	}
	if e.Lot == lots.InPlace {
		annotations[shipper.LotAnnotation] = shipper.LotInPlace
	}
	if len(annotations) > 0 {
		e.Object.SetAnnotations(annotations)
	}
}

// prepareSideBySide prepares a Deployment: no replicas yet, and a selector that matches no Pods of other Deployments and Releases.
func prepareSideBySide(e *lots.Entry, previews []string, what string, t Target) error {
	if err := unstructured.SetNestedField(e.Object.Object, int64(0), "spec", "replicas"); err != nil {
		return chartError("%s has no spec that is a map", what)
	}
	own := map[string]string{
		shipper.AppLabel: t.App, shipper.ReleaseLabel: t.ReleaseName, shipper.WorkloadLabel: lots.Name(e.Given, "", lots.MaxLabel),
	}
	if err := mergeLabels(e.Object.Object, own, "spec", "selector", "matchLabels"); err != nil {
		return chartError("%s: %s", what, err)
	}
	for _, service := range append(slices.Clone(e.Serves), previews...) {
		own[shipper.BackendLabel(service)] = "true"
	}
	if err := addLabels(e.Object, t, own, selectorOf(e.Object), "spec", "template", "metadata", "labels"); err != nil {
		return chartError("%s: %s", what, err)
	}
	return checkSelector(e.Object, what)
}

// selectByService makes a Service select the Pods that have traffic from it, or those of a preview, which are none yet. A Service that
// stays as it is loses the label that would make it another.
func selectByService(o *unstructured.Unstructured, use lots.Use, t Target) error {
	removeKeys(o.Object, func(key, _ string) bool { return key == shipper.LBLabel || key == shipper.ProofLabel }, "metadata", "labels")
	mark, selector := shipper.LBForProduction, map[string]string{shipper.AppLabel: t.App, shipper.ServesLabel(o.GetName()): "true"}
	switch use {
	case lots.AsItIs:
		return nil
	case lots.Preview:
		mark, selector = shipper.LBForPreview, map[string]string{
			shipper.AppLabel: t.App, shipper.ReleaseLabel: shipper.NoRelease, shipper.BackendLabel(o.GetName()): "true",
		}
	case lots.Production:
	}
	if err := unstructured.SetNestedStringMap(o.Object, selector, "spec", "selector"); err != nil {
		return chartError("Service %q has no spec that is a map", chart.Shorten(o.GetName()))
	}
	return mergeLabels(o.Object, map[string]string{shipper.LBLabel: mark}, "metadata", "labels")
}
