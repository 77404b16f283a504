// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

const (
	// page is how many objects one request reads. An object has up to 1.5 MiB, and several times that when decoded.
	page = 16
	// maxPasses bounds the passes of the process that read at the same time: for memory, and so that servers that do not answer for a kind
	// leave workers for the rollouts of others.
	maxPasses = 2
	// busyDelay is when an Application that waits for one of these slots tries again, should it not be woken.
	busyDelay = 10 * time.Second
	// readTimeout bounds how long a pass reads.
	readTimeout = 30 * time.Second
)

// preferred lists what is served, in the versions that the API server prefers.
type preferred interface {
	ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error)
}

// reader reads selected objects from the API server.
type reader struct {
	client    client.Reader
	mapper    meta.RESTMapper
	discovery preferred
	policy    objects.Policy
}

func newReader(c client.Reader, mapper meta.RESTMapper, discovery preferred, policy objects.Policy) *reader {
	return &reader{client: c, mapper: mapper, discovery: discovery, policy: policy}
}

// query is one selector, resolved: objects of a kind in a namespace.
type query struct {
	gvk        schema.GroupVersionKind
	collection collection
	// name is that of the only object; empty for all.
	name string
	// labels are nil for all.
	labels labels.Selector
	// withContent is true for Namespaces whose content is selected.
	withContent bool
}

// queryKey identifies a query.
type queryKey struct {
	gvk          schema.GroupVersionKind
	collection   collection
	name, labels string
	withContent  bool
}

func (q query) key() queryKey {
	key := queryKey{gvk: q.gvk, collection: q.collection, name: q.name, withContent: q.withContent}
	if q.labels != nil {
		key.labels = q.labels.String() // empty if it selects all, as without labels
	}
	return key
}

func (q query) interest() interest {
	return interest{collection: q.collection, name: q.name, labels: q.labels}
}

// found is what a query has read, normalised.
type found struct {
	query
	objects []unstructured.Unstructured
	// note says why an object that is selected by name is not among them; empty if it is.
	note string
}

// queries resolves the selectors of an Application, equal ones to one query, and returns what rights judge them by. Errors are *Problem.
func (r *reader) queries(app *shipper.Application) (out []query, selected []rights.Selected, err error) {
	known := map[queryKey]bool{}
	for i, s := range app.Spec.Template.Resources.Select {
		path := fmt.Sprintf("spec.template.resources.select[%d]", i)
		var versions []string
		if s.Version != "" {
			versions = []string{s.Version}
		}
		mapping, err := r.mapper.RESTMapping(schema.GroupKind{Group: s.Group, Kind: s.Kind}, versions...)
		if meta.IsNoMatchError(err) {
			return nil, nil, problemf(shipper.SelectionNotReadable, retry.Recheck, "%s: the API server does not serve %s",
				path, schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind})
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: finding the kind: %w", path, err)
		}
		q := query{gvk: mapping.GroupVersionKind, collection: collection{resource: mapping.Resource}, name: s.Name}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if q.collection.namespace = s.Namespace; q.collection.namespace == "" {
				q.collection.namespace = app.Namespace
			}
		}
		if s.LabelSelector != nil {
			if q.labels, err = metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
				return nil, nil, problemf(shipper.SelectionInvalid, retry.Wait, "%s.labelSelector: %s", path, err)
			}
		}
		if refusal := r.policy.Refused(q.gvk, q.collection.namespace, q.name); refusal != nil {
			return nil, nil, problemf(shipper.SelectionNotAllowed, retry.Wait, "%s.%s: %s", path, refusal.Field, refusal.Reason)
		}
		q.withContent = q.gvk.GroupKind() == namespaces && s.Content != shipper.ContentNone
		selected = append(selected, rights.Selected{
			Index: i, Group: q.gvk.Group, Resource: mapping.Resource.Resource, Name: s.Name, Namespace: q.collection.namespace,
			Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
		})
		if key := q.key(); !known[key] {
			known[key], out = true, append(out, q)
		}
	}
	return out, selected, nil
}

var namespaces = schema.GroupKind{Kind: "Namespace"}

// read reads what queries select, and the content of the Namespaces among it. Errors that concern rights are *Problem. If it is too large,
// the result has the names of what was read before.
func (r *reader) read(ctx context.Context, queries []query) ([]found, error) {
	budget := &budget{}
	out, err := r.all(ctx, queries, budget)
	if err == nil {
		var content []found
		content, err = r.content(ctx, out, budget)
		out = append(out, content...)
	}
	if _, large := errors.AsType[*objects.TooLarge](err); large {
		return dropContent(out), err
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// content reads what is in the Namespaces that queries with content have found.
func (r *reader) content(ctx context.Context, all []found, budget *budget) ([]found, error) {
	names := map[string]bool{}
	for _, f := range all {
		for i := range f.objects {
			if f.withContent {
				names[f.objects[i].GetName()] = true
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	kinds, err := r.kinds(ctx)
	if err != nil {
		return nil, err
	}
	var inside []query
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, q := range kinds {
			q.collection.namespace = name
			inside = append(inside, q)
		}
	}
	return r.all(ctx, inside, budget)
}

// all makes queries one after another: the pages of several at once would be in memory together. The results are in their order, and
// have what was read before an error.
func (r *reader) all(ctx context.Context, queries []query, budget *budget) ([]found, error) {
	out := make([]found, 0, len(queries))
	for _, q := range queries {
		read := r.list
		if q.name != "" {
			read = r.get
		}
		one, err := read(ctx, q, budget)
		if out = append(out, one); err != nil {
			return out, err
		}
	}
	return out, nil
}

// get reads the object of a name.
func (r *reader) get(ctx context.Context, q query, budget *budget) (found, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(q.gvk)
	out := found{query: q}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: q.collection.namespace, Name: q.name}, o)
	if apierrors.IsNotFound(err) {
		o.SetNamespace(q.collection.namespace)
		o.SetName(q.name)
		out.note = objects.KeyOf(o).String() + " does not exist"
		return out, nil
	}
	if err != nil {
		return out, notRead(q, "get", err)
	}
	if err := r.terminating(q, o); err != nil {
		return out, err
	}
	if reason, skip := r.policy.Skip(o); skip {
		out.note = objects.KeyOf(o).String() + " is left out: " + reason
		return out, nil
	}
	err = out.add(o, budget)
	return out, err
}

// terminating is the *Problem of a Namespace that is selected with its content and is being deleted: its content goes object by
// object, and must not be removed so from clusters.
func (r *reader) terminating(q query, o *unstructured.Unstructured) error {
	if !q.withContent || o.GetDeletionTimestamp() == nil || r.policy.Refused(q.gvk, "", o.GetName()) != nil {
		return nil
	}
	return problemf(shipper.SelectionNotReadable, retry.Wait,
		"Namespace %s is being deleted: nothing is taken until it is gone, and what is placed stays", o.GetName())
}

// list reads objects in pages.
func (r *reader) list(ctx context.Context, q query, budget *budget) (found, error) {
	out := found{query: q}
	options := []client.ListOption{client.InNamespace(q.collection.namespace), client.Limit(page)}
	if q.labels != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: q.labels})
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(q.gvk.GroupVersion().WithKind(q.gvk.Kind + "List"))
		if err := r.client.List(ctx, list, append(slices.Clone(options), client.Continue(next))...); err != nil {
			return out, notRead(q, "list", err)
		}
		for i := range list.Items {
			if err := r.terminating(q, &list.Items[i]); err != nil {
				return out, err
			}
			if _, skip := r.policy.Skip(&list.Items[i]); skip {
				continue
			}
			if err := out.add(&list.Items[i], budget); err != nil {
				return out, err
			}
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// add adds a live object.
func (f *found) add(o *unstructured.Unstructured, budget *budget) error {
	is, err := budget.add(o)
	if err != nil {
		return err
	}
	f.objects = append(f.objects, is)
	return nil
}

// kinds are queries, without a namespace, for all kinds with namespaces that may be placed.
func (r *reader) kinds(ctx context.Context) ([]query, error) {
	lists, err := r.discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for gv, cause := range partial.Groups {
			// A group that does not answer must not look as if its objects were gone. Nothing of some groups is ever placed.
			if (objects.Policy{}).Refused(gv.WithKind("*"), "", "") == nil {
				return nil, fmt.Errorf("discovering the kinds of %s: %w", gv, cause)
			}
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovering what the API server serves: %w", err)
	}
	var out []query
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovering what the API server serves: %w", err)
		}
		for _, one := range list.APIResources {
			gvk := gv.WithKind(one.Kind)
			stored := slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "create") && !strings.Contains(one.Name, "/")
			if stored && r.policy.Refused(gvk, "", "") == nil {
				out = append(out, query{gvk: gvk, collection: collection{resource: gv.WithResource(one.Name)}})
			}
		}
	}
	return out, nil
}

// scope is the objects.Scope of the management cluster.
func (r *reader) scope(gk schema.GroupKind) (namespaced, known bool) {
	mapping, err := r.mapper.RESTMapping(gk)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// interests are those of queries and of what they have found: for each selected Namespace also the usual kinds, as far as they are served,
// and CustomResourceDefinitions.
func (r *reader) interests(queries []query, all []found) []interest {
	var out []interest
	content := map[string]bool{}
	for _, q := range queries {
		out = append(out, q.interest())
		if q.withContent && q.name != "" {
			content[q.name] = true
		}
	}
	for _, f := range all {
		switch {
		case f.withContent:
			for i := range f.objects {
				content[f.objects[i].GetName()] = true
			}
		case len(f.objects) > 0:
			out = append(out, f.interest())
		}
	}
	for name := range content {
		for _, gk := range usualKinds {
			if mapping, err := r.mapper.RESTMapping(gk); err == nil && r.policy.Refused(mapping.GroupVersionKind, name, "") == nil {
				out = append(out, interest{collection: collection{mapping.Resource, name}})
			}
		}
	}
	if len(content) > 0 {
		out = append(out, interest{collection: collection{resource: definitions}})
	}
	return out
}

// notRead describes an error of a request.
func notRead(q query, verb string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("reading %s: %w", q.gvk.Kind, err)
	}
	what := q.collection.resource.GroupResource().String()
	if q.name != "" {
		what += " " + q.name
	}
	command := shipper.BindEverywhereCommand(shipper.ResourceSelectorRole)
	if q.collection.namespace != "" {
		what += " in namespace " + q.collection.namespace
		command = shipper.BindCommand(shipper.ResourceSelectorRole, q.collection.namespace)
	}
	p := problemf(shipper.SelectionNotReadable, retry.Recheck, "Shipper may not %s %s; an administrator may let it: %s", verb, what, command)
	p.cause = err
	return p
}
