// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
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
	// page is how many objects one request lists: managedFields and annotations of one can have a MiB.
	page = 16
	// listsAtOnce bounds the lists of one judgement that run at the same time.
	listsAtOnce = 2
	// maxPages bounds the pages of the process that are in memory at the same time.
	maxPages = 4
)

// pages are the slots of pages.
var pages = semaphore.NewWeighted(maxPages)

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
	distinct, same := merge(s.items)
	found.same = same
	var single, whole []*item
	for _, one := range distinct {
		if one.hasContent() {
			whole = append(whole, one)
		} else {
			single = append(single, one)
		}
	}
	eachOf(len(single), listsAtOnce, func(i int) { j.count(ctx, single[i], found) })
	for _, one := range whole { // one after the other: each lists all kinds
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

// merge returns the first of equal items, and by its index those of the others.
func merge(items []item) (distinct []*item, same map[int][]int) {
	type key struct {
		kind                    Kind
		namespace, name, labels string
		content                 bool
	}
	first := map[key]int{}
	same = map[int][]int{}
	for i := range items {
		one := &items[i]
		is := key{kind: one.kind, namespace: one.namespace, name: one.Name, content: one.hasContent()}
		if one.LabelSelector != nil {
			is.labels = metav1.FormatLabelSelector(one.LabelSelector)
		}
		at, twice := first[is]
		if twice {
			same[at] = append(same[at], one.index)
			continue
		}
		first[is] = one.index
		distinct = append(distinct, one)
	}
	return distinct, same
}

// counted collects what several lists find.
type counted struct {
	lock sync.Mutex
	// objects have no more than their keys.
	objects map[objects.Key]unstructured.Unstructured
	notes   []noted
	// same has the indexes of selectors that are equal to a counted one, by its index.
	same map[int][]int
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
	for _, index := range append([]int{i.index}, c.same[i.index]...) {
		c.notes = append(c.notes, noted{index, fmt.Sprintf(format, args...)})
	}
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
	names, err := j.list(ctx, i.kind, i.namespace, i.LabelSelector, found)
	if err != nil {
		found.note(i, "not counted, %v", err)
		return
	}
	if len(names) == 0 {
		found.note(i, "selects nothing yet: there is no %s%s%s", i.kind.Kind, inNamespace(i.namespace), withLabels(i.LabelSelector))
	}
	if !i.hasContent() {
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return j.Policy.Refused(i.kind.GroupVersionKind, "", name) != nil })
	for _, name := range names {
		j.countContent(ctx, i, name, found)
	}
}

func withLabels(selector *metav1.LabelSelector) string {
	if selector == nil {
		return ""
	}
	return " with these labels"
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
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
	eachOf(len(kinds), listsAtOnce, func(at int) {
		_, errs[at] = j.list(ctx, kinds[at], namespace, nil, found)
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

// list adds at most maxPerList objects by their metadata, in pages, and returns their names.
func (j *Judge) list(
	ctx context.Context, k Kind, namespace string, labels *metav1.LabelSelector, found *counted,
) (names []string, err error) {
	options := []client.ListOption{client.InNamespace(namespace)}
	if labels != nil {
		selector, err := metav1.LabelSelectorAsSelector(labels)
		if err != nil {
			return nil, fmt.Errorf("reading its labelSelector: %w", err)
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	next := ""
	for rest := maxPerList; rest > 0; rest -= page {
		from := []client.ListOption{client.Limit(min(rest, page)), client.Continue(next)}
		some, then, err := j.page(ctx, k, append(from, options...), found)
		if err != nil {
			found.unread(next)
			return nil, fmt.Errorf("listing %s: %w", k.GroupResource(), err)
		}
		names = append(names, some...)
		if next = then; next == "" {
			break
		}
	}
	found.unread(next)
	return names, nil
}

// page adds the objects of a page, and returns their names and where the next page begins.
func (j *Judge) page(ctx context.Context, k Kind, options []client.ListOption, found *counted) (names []string, next string, err error) {
	if err := pages.Acquire(ctx, 1); err != nil {
		return nil, "", err
	}
	defer pages.Release(1)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.GroupVersionKind)
	if err := j.Reader.List(ctx, list, options...); err != nil {
		return nil, "", err
	}
	list.SetGroupVersionKind(k.GroupVersionKind) // that of the items, not of the list
	found.add(j.Policy, list, false)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, list.Continue, nil
}

// unread notes that there are more objects if a next page begins anywhere.
func (c *counted) unread(next string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.more = c.more || next != ""
}

// add adds the objects of a list. Those that a selector names are added whatever makes them.
func (c *counted) add(policy objects.Policy, list *metav1.PartialObjectMetadataList, named bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
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
			for _, unused := range []string{"labels", "annotations", "ownerReferences"} {
				unstructured.RemoveNestedField(o.Object, "metadata", unused)
			}
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
