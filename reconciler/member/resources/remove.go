// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// Remove takes out of a cluster that the target leaves what its Application has there, unless another target of the Application stays.
// Without an error it is gone.
func (w *Worker) Remove(ctx context.Context, t Task) Result {
	p := w.pass(t)
	p.out.Err = p.removeAll(ctx)
	return p.out
}

// removeAll asks the API servers themselves: an outdated cache must not take down what a newer target has.
func (p *pass) removeAll(ctx context.Context) error {
	var err error
	if p.anchor, err = p.readAnchor(ctx, p.Cluster.Live()); err != nil {
		if reason, _ := retry.ClassifyInCluster(err); reason == shipper.ObjectConflict {
			return nil // there is nothing of ours
		}
		return err
	}
	if p.anchor == nil {
		return nil
	}
	if p.anchor.claim != nil {
		p.out.Events = append(p.out.Events, leftAlone(p.Name, anchorKey(p.Target).String(), p.anchor.identity, p.Identity))
		return nil
	}
	removes, err := p.Siblings.removes(ctx, p.Target, p.Name, p.anchor.targetUID)
	if err != nil {
		p.out.General = err
		return err
	}
	if !removes {
		return nil
	}
	if p.anchor.deleting {
		return waiting("ConfigMap %s is being deleted", anchorKey(p.Target))
	}
	left, err := p.remove(ctx, p.anchor.inventory)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return waiting("waiting until these are gone: %s", list(left))
	}
	err = applyset.DeleteList(ctx, p.Cluster.Client(), anchorKey(p.Target), p.anchor.Version)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	p.worker.judgements.set(site{p.Name, p.rules.owner}, judged{})
	p.out.Events = append(p.out.Events, removed(p.Name, ownerOf(p.Target)))
	return nil
}

// list names entries.
func list(entries []entry) string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.key().String())
	}
	return named(names, ", ")
}

// remove deletes what entries list, by removal. left are those that are still there. CustomResourceDefinitions, and then Namespaces, go
// when everything else is gone.
func (p *pass) remove(ctx context.Context, entries []entry) (left []entry, err error) {
	if p.spec.Removal == shipper.RemovalNone {
		return nil, nil
	}
	for _, round := range rounds(entries) {
		left, err := p.removeRound(ctx, round)
		if err != nil {
			return entries, err
		}
		if len(left) > 0 {
			return unfinished(entries, left), nil
		}
	}
	return nil, nil
}

// removeRound deletes objects of one kind side by side, and kinds one after the other: a webhook configuration before its server.
func (p *pass) removeRound(ctx context.Context, round []entry) (left []entry, err error) {
	var all []error
	for len(round) > 0 {
		kind := round[0].key().GroupKind()
		n := slices.IndexFunc(round, func(e entry) bool { return e.key().GroupKind() != kind })
		if n < 0 {
			n = len(round)
		}
		gone, errs := make([]bool, n), make([]error, n)
		each(p.worker.Parallel, n, func(i int) {
			if gone[i], errs[i] = p.removeOne(ctx, round[i]); errs[i] != nil {
				errs[i] = p.explain(round[i].key(), round[i].gvk(), errs[i])
			}
		})
		for i, e := range round[:n] {
			if !gone[i] {
				left = append(left, e)
			}
		}
		round, all = round[n:], append(all, errs...)
	}
	return left, together(all)
}

// unfinished are the entries that are left, and those that are not begun.
func unfinished(entries, left []entry) []entry {
	last := roundOf(left[0])
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
		return roundOf(e) < last || roundOf(e) == last && !slices.Contains(left, e)
	})
}

// roundOf is when an object is removed.
func roundOf(e entry) int {
	switch k := e.key(); {
	case isDefinition(k):
		return 1
	case isShared(k):
		return 2
	}
	return 0
}

// rounds are entries in the order of their removal.
func rounds(entries []entry) [3][]entry {
	var out [3][]entry
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b entry) int { return objects.CompareForRemoval(a.key(), b.key()) })
	for _, e := range sorted {
		out[roundOf(e)] = append(out[roundOf(e)], e)
	}
	return out
}

// removeOne deletes an object if it is the one that an entry lists, and reports whether it is gone, or is to stay. One without marks is in
// no cache.
func (p *pass) removeOne(ctx context.Context, e entry) (gone bool, err error) {
	always := func(*metav1.PartialObjectMetadata) bool { return true }
	there, err := applyset.Remove(ctx, p.Cluster, e.gvk(), e.name(), always, func(live *metav1.PartialObjectMetadata) (bool, error) {
		if !e.goes(p.rules.owner, live) {
			return false, nil
		}
		made, err := p.maker(ctx, e.key(), live)
		if made != "" {
			p.note(stays(p.Name, e.key().String(), "it belongs to "+made))
		}
		if made != "" || err != nil {
			return false, err
		}
		if live.DeletionTimestamp != nil || !isShared(e.key()) || p.spec.Removal == shipper.RemovalAll {
			return true, nil
		}
		holds, err := p.holds(ctx, e)
		if holds != "" {
			p.note(stays(p.Name, e.key().String(), holds))
		}
		return holds == "", err
	})
	return !there && err == nil, err
}

// holds names something that is not ours in a Namespace, or an object of a CustomResourceDefinition's kind; empty when there is nothing.
// What cannot be listed may be there.
func (p *pass) holds(ctx context.Context, e entry) (string, error) {
	if isDefinition(e.key()) {
		return p.instances(ctx, e)
	}
	kinds := p.namespacedKinds()
	found, errs := make([]string, len(kinds)), make([]error, len(kinds))
	each(p.worker.Parallel, len(kinds), func(i int) {
		found[i], errs[i] = p.first(ctx, kinds[i], client.InNamespace(e.Name))
	})
	if err := together(errs); err != nil {
		return "", err
	}
	return cmp.Or(found...), nil
}

// instances names an object of the kind that a CustomResourceDefinition defines.
func (p *pass) instances(ctx context.Context, e entry) (string, error) {
	definition := fromContent(map[string]any{})
	definition.SetGroupVersionKind(e.gvk())
	if err := p.Cluster.Live().Get(ctx, e.name(), definition); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return "", fmt.Errorf("reading its versions: %w", err)
	}
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["served"] == true {
			name, _, _ := unstructured.NestedString(version, "name")
			return p.first(ctx, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
		}
	}
	return "", nil
}

// pageOf bounds a list that looks for the first object that counts.
const pageOf = 100

// first names the first object of a kind that another process does not make in every cluster.
func (p *pass) first(ctx context.Context, kind schema.GroupVersionKind, of ...client.ListOption) (string, error) {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(kind)
	for {
		err := p.Cluster.Live().List(ctx, page, append(of, client.Limit(pageOf), client.Continue(page.Continue))...)
		switch {
		case isGone(err), apierrors.IsMethodNotSupported(err):
			return "", nil
		case rights.Denied(err):
			return fmt.Sprintf("Shipper may not list kind %s, of which objects may be left", kind.Kind), nil
		case err != nil:
			return "", fmt.Errorf("listing kind %s: %w", kind.Kind, err)
		}
		for i := range page.Items {
			if key := counts(&page.Items[i], kind); key != "" {
				return key + " is left", nil
			}
		}
		if page.Continue == "" {
			return "", nil
		}
	}
}

// counts names an object unless another process makes it in every cluster.
func counts(o *metav1.PartialObjectMetadata, kind schema.GroupVersionKind) string {
	u := fromContent(map[string]any{"metadata": map[string]any{"namespace": o.Namespace, "name": o.Name}})
	u.SetGroupVersionKind(kind)
	u.SetOwnerReferences(o.OwnerReferences)
	u.SetAnnotations(o.Annotations)
	if _, skip := (objects.Policy{}).Skip(u); skip && kind.Kind != "Pod" || metav1.GetControllerOf(o) != nil {
		return ""
	}
	if _, token := o.Annotations["kubernetes.io/service-account.uid"]; token && kind.Kind == "Secret" {
		return ""
	}
	return objects.KeyOf(u).String()
}

// ephemeral are the kinds whose objects are of no account in a Namespace that goes, or that cannot be listed.
var ephemeral = map[string]bool{
	"Event": true, "Endpoints": true, "EndpointSlice": true, "Lease": true, "ControllerRevision": true, "PodMetrics": true, "Binding": true,
	"Scale": true, "Eviction": true, "TokenRequest": true, "LocalSubjectAccessReview": true,
}

// namespacedKinds are the kinds of objects that may be in a Namespace, each in one version.
func (p *pass) namespacedKinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	known := map[string]bool{}
	for _, text := range p.Cluster.APIVersions() {
		parts := strings.Split(text, "/")
		if len(parts) == 2 && parts[0] == "v1" {
			parts = append([]string{""}, parts...)
		}
		if len(parts) != 3 || ephemeral[parts[2]] || known[parts[0]+"/"+parts[2]] {
			continue
		}
		kind := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
		mapping, err := p.Cluster.Mapping(kind)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			known[parts[0]+"/"+parts[2]] = true
			out = append(out, kind)
		}
	}
	return out
}
