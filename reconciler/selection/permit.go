// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Needs are the rights besides those of its selectors that content of resources needs: an Envelope may hold objects of other namespaces.
func (s *Source) Needs(namespace string, of *shipper.Resources, content []unstructured.Unstructured) ([]rights.Action, error) {
	_, more, err := s.needs(namespace, []*shipper.Resources{of}, content)
	return actions(more), err
}

// Permit returns a *Problem unless the user whose rights an Application has may place, now, what was selected and is placed or removed, and
// the objects of content. What an Envelope holds for other namespaces needs the right of the user who selects the Envelope, too: these
// rights are returned. The first of selected selects content.
func (s *Source) Permit(
	ctx context.Context, app *shipper.Application, selected []*shipper.Resources, content []unstructured.Unstructured,
) ([]rights.Action, error) {
	needs, more, err := s.needs(app.Namespace, selected, content)
	if err != nil {
		return nil, err
	}
	return actions(more), s.rights.permit(ctx, app, append(needs, more...))
}

// needs are the rights that selectors need, and those that content needs besides what the first of selected needs.
func (s *Source) needs(
	namespace string, selected []*shipper.Resources, content []unstructured.Unstructured,
) (needs, more []rights.Need, err error) {
	var own int
	for i, of := range selected {
		some, err := s.reader.selected(namespace, of)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range rights.ToPlace(namespace, some) {
			if !slices.ContainsFunc(needs, func(other rights.Need) bool { return other.Action == n.Action }) {
				needs = append(needs, n)
			}
		}
		if i == 0 {
			own = len(needs)
		}
	}
	placed, err := s.reader.contained(content)
	if err != nil {
		return nil, nil, err
	}
	return needs, rights.ToPlaceContent(namespace, placed, needs[:own]), nil
}

func actions(needs []rights.Need) []rights.Action {
	var out []rights.Action
	for _, n := range needs {
		out = append(out, n.Action)
	}
	return out
}

// selected is what rights judge selectors by, whose kinds may not be served any more.
func (r *reader) selected(namespace string, of *shipper.Resources) ([]rights.Selected, error) {
	var out []rights.Selected
	if of == nil {
		return nil, nil
	}
	for i, one := range of.Select {
		is, err := r.judged(schema.GroupKind{Group: one.Group, Kind: one.Kind}, one.Namespace)
		if err != nil {
			return nil, fmt.Errorf("spec.template.resources.select[%d]: finding the kind: %w", i, err)
		}
		is.Index, is.Name = i, one.Name
		if is.Namespaced {
			is.Namespace = cmp.Or(one.Namespace, namespace)
		}
		out = append(out, is)
	}
	return out, nil
}

// contained is what rights judge objects by.
func (r *reader) contained(content []unstructured.Unstructured) ([]rights.Selected, error) {
	var out []rights.Selected
	for i := range content {
		o := &content[i]
		is, err := r.judged(o.GroupVersionKind().GroupKind(), o.GetNamespace())
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		is.Index, is.Name, is.Namespaced, is.Namespace = -1, o.GetName(), o.GetNamespace() != "", o.GetNamespace()
		out = append(out, is)
	}
	return out, nil
}

// judged is a kind as rights judge it. One that is not served has the usual plural of its name, and a namespace if one is named.
func (r *reader) judged(gk schema.GroupKind, namespace string) (rights.Selected, error) {
	mapping, err := r.mapper.RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
		return rights.Selected{Group: gk.Group, Resource: plural.Resource, Namespaced: namespace != ""}, nil
	}
	if err != nil {
		return rights.Selected{}, err
	}
	return rights.Selected{
		Group: gk.Group, Resource: mapping.Resource.Resource, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}, nil
}
