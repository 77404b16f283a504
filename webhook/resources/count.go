// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/chart/objects"
)

const (
	// maxPerList bounds the objects that are counted of one kind in one namespace.
	maxPerList = 200
	// maxNamespaces bounds the Namespaces whose content is counted; of the others, only they are.
	maxNamespaces = 5
	// maxNamed bounds the workloads that a warning names.
	maxNamed = 5
)

// workloads are the kinds that run Pods where they are.
var workloads = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
}

// Describe says, in warnings, how many objects are selected, and which of them run in the management cluster as well. It reads metadata
// only: what a Secret's type or a ConfigMap's data excludes is counted.
func (j *Judge) Describe(ctx context.Context, s *Selection) []string {
	out := slices.Clone(s.Late)
	if j.Reader == nil || len(s.items) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found := &counted{objects: map[objects.Key]unstructured.Unstructured{}, namespaces: maxNamespaces}
	var single, whole []*item
	for i := range s.items {
		if one := &s.items[i]; one.hasContent() {
			whole = append(whole, one)
		} else {
			single = append(single, one)
		}
	}
	each(len(single), func(i int) { j.count(ctx, single[i], found) })
	for _, one := range whole { // one after the other: each lists all kinds at once
		j.count(ctx, one, found)
	}
	slices.SortFunc(found.notes, func(a, b noted) int { return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.text, b.text)) })
	for _, n := range found.notes {
		out = append(out, fmt.Sprintf("select[%d]: %s", n.index, n.text))
	}
	list := found.sorted()
	more := ""
	if found.more {
		more = "more than "
	}
	out = append(out, "selects "+more+objects.Summarise(list))
	return append(out, runHere(list)...)
}

// counted collects what several lists find.
type counted struct {
	lock    sync.Mutex
	objects map[objects.Key]unstructured.Unstructured
	notes   []noted
	// more is true when a list was not read to its end.
	more bool
	// namespaces is how many Namespaces may still be counted.
	namespaces int
}

// noted is a remark about a selector.
type noted struct {
	index int
	text  string
}

func (c *counted) note(i *item, format string, args ...any) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.notes = append(c.notes, noted{i.index, fmt.Sprintf(format, args...)})
}

// sorted are the objects in the order of their keys.
func (c *counted) sorted() []unstructured.Unstructured {
	out := make([]unstructured.Unstructured, 0, len(c.objects))
	for _, o := range c.objects {
		out = append(out, o)
	}
	objects.Sort(out)
	return out
}

// count adds what an item selects.
func (j *Judge) count(ctx context.Context, i *item, found *counted) {
	if i.Name != "" {
		j.countNamed(ctx, i, found)
		return
	}
	list, err := j.list(ctx, i.kind, i.namespace, i.LabelSelector)
	if err != nil {
		found.note(i, "not counted, %v", err)
		return
	}
	found.add(j.Policy, list, false)
	if !i.hasContent() {
		return
	}
	var names []string
	for at := range list.Items {
		if j.Policy.Refused(i.kind.GroupVersionKind, "", list.Items[at].Name) == nil {
			names = append(names, list.Items[at].Name)
		}
	}
	for _, name := range names {
		j.countContent(ctx, i, name, found)
	}
}

func (j *Judge) countNamed(ctx context.Context, i *item, found *counted) {
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(i.kind.GroupVersionKind)
	switch err := j.Reader.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: i.Name}, one); {
	case apierrors.IsNotFound(err):
		found.note(i, "there is no %s %q yet", i.kind.Kind, i.Name)
		return
	case err != nil:
		found.note(i, "not counted, %v", err)
		return
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*one}}
	list.SetGroupVersionKind(i.kind.GroupVersionKind)
	found.add(j.Policy, list, true)
	if i.hasContent() {
		j.countContent(ctx, i, i.Name, found)
	}
}

// countContent adds what is in a namespace, of all kinds that may be placed.
func (j *Judge) countContent(ctx context.Context, i *item, namespace string, found *counted) {
	if found.namespaces--; found.namespaces < 0 {
		found.more = true
		return
	}
	kinds, err := j.Kinds.InNamespaces(ctx)
	if err != nil {
		found.note(i, "the content of namespace %s is not counted, %v", namespace, err)
		return
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool {
		return j.Policy.Refused(k.GroupVersionKind, namespace, "") != nil
	})
	errs := make([]error, len(kinds))
	each(len(kinds), func(at int) {
		list, err := j.list(ctx, kinds[at], namespace, nil)
		if errs[at] = err; err == nil {
			found.add(j.Policy, list, false)
		}
	})
	var failed []string
	for at, err := range errs {
		if err != nil {
			failed = append(failed, kinds[at].GroupResource().String())
		}
	}
	if len(failed) > 0 {
		found.note(i, "not counted in namespace %s: %s", namespace, abridged(failed))
	}
}

// list reads the metadata of at most maxPerList objects.
func (j *Judge) list(
	ctx context.Context, k Kind, namespace string, labels *metav1.LabelSelector,
) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.GroupVersionKind)
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(maxPerList)}
	if labels != nil {
		selector, err := metav1.LabelSelectorAsSelector(labels)
		if err != nil {
			return nil, fmt.Errorf("reading its labelSelector: %w", err)
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	if err := j.Reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", k.GroupResource(), err)
	}
	list.SetGroupVersionKind(k.GroupVersionKind) // that of the items, not of the list
	return list, nil
}

// add adds the objects of a list. Those that a selector names are added whatever makes them.
func (c *counted) add(policy objects.Policy, list *metav1.PartialObjectMetadataList, named bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.more = c.more || list.Continue != ""
	for i := range list.Items {
		from := &list.Items[i]
		o := unstructured.Unstructured{}
		o.SetGroupVersionKind(list.GroupVersionKind())
		o.SetNamespace(from.Namespace)
		o.SetName(from.Name)
		o.SetLabels(from.Labels)
		o.SetAnnotations(from.Annotations)
		o.SetOwnerReferences(from.OwnerReferences)
		if _, skipped := policy.Skip(&o); named || !skipped {
			c.objects[objects.KeyOf(&o)] = o
		}
	}
}

// runHere warns of workloads: what is selected has effect in the management cluster, too.
func runHere(list []unstructured.Unstructured) []string {
	var names []string
	for i := range list {
		if key := objects.KeyOf(&list[i]); slices.Contains(workloads, key.GroupKind()) {
			names = append(names, key.Kind+" "+key.Name)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return []string{names[0] + " runs here as well: put it into an " + envelopeKind}
	default:
		return []string{abridged(names) + " run here as well: put them into an " + envelopeKind}
	}
}

const envelopeKind = "Envelope"

// abridged lists names.
func abridged(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
