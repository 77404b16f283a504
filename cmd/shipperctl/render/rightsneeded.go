// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/reconciler/member/rights"
)

// rightsNeeded warns of kinds that an Application selects and that Shipper's account in application clusters may not write by default.
// Whether an administrator has granted the right is known in each cluster alone. An Envelope counts by the kinds of its manifests, which
// inside returns.
func rightsNeeded(manifest *unstructured.Unstructured, kinds meta.RESTMapper, inside envelopes) []string {
	app := &shipper.Application{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, app)
	if err != nil || app.Spec.Template.Resources == nil { // the API server refuses what is no Application
		return nil
	}
	var selected []schema.GroupResource
	add := func(kind schema.GroupKind) {
		mapping, err := kinds.RESTMapping(kind)
		if err != nil {
			return
		}
		if of := mapping.Resource.GroupResource(); !rights.Grants(of) && !slices.Contains(selected, of) {
			selected = append(selected, of)
		}
	}
	content := false
	for _, s := range app.Spec.Template.Resources.Select {
		if s.Group == shipper.GroupName && s.Kind == "Envelope" {
			for _, kind := range inside(s) {
				add(kind)
			}
			continue
		}
		add(schema.GroupKind{Group: s.Group, Kind: s.Kind})
		content = content || s.Group == "" && s.Kind == "Namespace" && s.Content != shipper.ContentNone
	}
	lacking, err := chartcheck.NotByDefault(selected)
	if err != nil || len(lacking) == 0 {
		return nil
	}
	names := make([]string, len(lacking))
	for i, of := range lacking {
		names[i] = of.String()
	}
	text := "by default Shipper's account in application clusters may not write " + strings.Join(names, ", ")
	if content {
		text += ", nor kinds in a namespace that charts do not need"
	}
	return []string{text + "; an administrator of each cluster grants it there, unless that was done: " + rights.Grant(lacking...)}
}

// envelopes returns the kinds of the manifests in the Envelopes of a selector.
type envelopes func(shipper.ResourceSelector) []schema.GroupKind

// envelopesOf reads Envelopes. Those that cannot be read have no kinds here: the dry run says why.
func envelopesOf(ctx context.Context, c client.Reader, namespace string) envelopes {
	return func(s shipper.ResourceSelector) (out []schema.GroupKind) {
		selector := labels.Everything()
		if s.LabelSelector != nil {
			var err error
			if selector, err = metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
				return nil
			}
		}
		var list shipper.EnvelopeList
		err := c.List(ctx, &list, client.InNamespace(cmp.Or(s.Namespace, namespace)), client.MatchingLabelsSelector{Selector: selector})
		if err != nil {
			return nil
		}
		for _, envelope := range list.Items {
			if s.Name != "" && s.Name != envelope.Name {
				continue
			}
			for _, m := range envelope.Spec.Manifests {
				o := &unstructured.Unstructured{Object: m}
				out = append(out, o.GroupVersionKind().GroupKind())
			}
		}
		return out
	}
}
