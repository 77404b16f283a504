// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// contents are the objects of a management cluster, read in this order: a Release that is made meanwhile is then newer than its
// Application, and targets without their Release are left out.
type contents struct {
	applications, releases, installations, capacities, traffics []object

	approvals, checkTargets, checks, notifications, blocks, clusters, charts []object

	envelopes, snapshots, strategies []object
	// contentSecrets are the Secrets with content of snapshots, by name. nil: they were not read.
	contentSecrets map[types.NamespacedName]*object

	secrets  map[string]*object // by the name of the Cluster
	identity *object
}

// collect makes a sorted backup, and notes about objects that are left out. It is pure.
func collect(f contents) (b Backup, notes []string) {
	releases := map[types.NamespacedName][]*object{}
	for _, rel := range pointers(f.releases) {
		releases[applicationOf(rel)] = append(releases[applicationOf(rel)], rel)
	}
	installations, capacities, traffics := byName(f.installations), byName(f.capacities), byName(f.traffics)
	for _, app := range pointers(f.applications) {
		own := releases[key(app)]
		delete(releases, key(app))
		if isDeleting(app) {
			notes = append(notes, fmt.Sprintf("%s is being deleted: it is left out, with its releases", describe(app)))
			continue
		}
		slices.SortStableFunc(own, func(a, b *object) int { return cmp.Compare(generation(a), generation(b)) })
		entry := Entry{Application: withoutManagedFields(app), Releases: []Release{}}
		for _, rel := range own {
			if isDeleting(rel) {
				notes = append(notes, fmt.Sprintf("%s is being deleted: it is left out", describe(rel)))
				continue
			}
			entry.Releases = append(entry.Releases, Release{
				Release:            withoutManagedFields(rel),
				InstallationTarget: targetOf(rel, installations),
				CapacityTarget:     targetOf(rel, capacities),
				TrafficTarget:      targetOf(rel, traffics),
			})
		}
		b = append(b, entry)
	}
	for _, orphans := range releases {
		for _, rel := range orphans {
			notes = append(notes, fmt.Sprintf("%s is left out: there is no application %q", describe(rel), applicationOf(rel)))
		}
	}
	charts, tornCharts := f.chartEntries()
	resources, tornResources := f.resourceEntries(b)
	notes = slices.Concat(notes, tornCharts, tornResources, f.approvalNotes(b), f.checkNotes(b))
	slices.Sort(notes)
	return slices.Concat(b, f.others(), charts, resources), notes
}

func (f contents) others() Backup {
	var b Backup
	for _, c := range pointers(f.checks) {
		if !isDeleting(c) {
			b = append(b, Entry{Check: withoutManagedFields(c)})
		}
	}
	for _, n := range pointers(f.notifications) {
		if !isDeleting(n) {
			b = append(b, Entry{Notification: withoutManagedFields(n)})
		}
	}
	for _, envelope := range pointers(f.envelopes) {
		if !isDeleting(envelope) {
			b = append(b, Entry{Envelope: withoutManagedFields(envelope)})
		}
	}
	for _, s := range pointers(f.strategies) {
		if !isDeleting(s) {
			b = append(b, Entry{Strategy: withoutManagedFields(s)})
		}
	}
	for _, block := range pointers(f.blocks) {
		if !isDeleting(block) {
			b = append(b, Entry{RolloutBlock: withoutManagedFields(block)})
		}
	}
	for _, cluster := range pointers(f.clusters) {
		if !isDeleting(cluster) {
			b = append(b, Entry{Cluster: withoutManagedFields(cluster), ClusterSecret: withoutManagedFields(f.secrets[cluster.GetName()])})
		}
	}
	if f.identity != nil {
		b = append(b, Entry{Identity: withoutManagedFields(f.identity)})
	}
	return b
}

// approvalNotes are a note for each Release of a backup with Approvals that count. They are not saved: the webhook writes the user who
// creates an Approval into it, and a restore must not approve in the name of others.
func (f contents) approvalNotes(b Backup) []string {
	counting := map[types.NamespacedName][]shipper.ApprovalSpec{}
	for _, o := range pointers(f.approvals) {
		if a, err := typed[shipper.Approval](o); err == nil && !isDeleting(o) {
			name := types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Release}
			counting[name] = append(counting[name], a.Spec)
		}
	}
	var notes []string
	for _, e := range b {
		for _, o := range releasesOf(e) {
			rel, err := typed[shipper.Release](o)
			if err != nil || shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
				continue
			}
			step, move := rel.Spec.TargetStep, stamp.Moved(rel).Count
			lost := slices.DeleteFunc(counting[key(o)], func(a shipper.ApprovalSpec) bool {
				return a.Step == nil || *a.Step != step || a.Move != move
			})
			if len(lost) > 0 {
				notes = append(notes, fmt.Sprintf("%s has Approvals of step %d (%d), which are left out: after a restore the gate is closed until "+
					"users approve or refuse the step again", describe(o), step, len(lost)))
			}
		}
	}
	return notes
}

// checkNotes are a note for each Release of a backup with results of checks of its step. They are not saved: values from
// before a restore say nothing about the Pods after it.
func (f contents) checkNotes(b Backup) []string {
	targets := byName(f.checkTargets)
	var notes []string
	for _, e := range b {
		for _, o := range releasesOf(e) {
			found := targets[key(o)]
			if found == nil || isDeleting(found) {
				continue
			}
			rel, err := typed[shipper.Release](o)
			if err != nil || shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
				continue
			}
			if target, err := typed[shipper.CheckTarget](found); err == nil && check.Current(target, rel) {
				notes = append(notes, fmt.Sprintf("%s has results of the checks of step %d, which are left out: after a restore the checks are "+
					"made again, from the beginning", describe(o), target.Spec.Step))
			}
		}
	}
	return notes
}

// chartEntries are the snapshots that Releases use, with notes on incomplete ones.
func (f contents) chartEntries() (b Backup, notes []string) {
	parts := map[types.UID][]*object{}
	var heads []*object
	for _, o := range pointers(f.charts) {
		if number(o, "part") == 0 {
			heads = append(heads, o)
			continue
		}
		for _, ref := range o.GetOwnerReferences() {
			parts[ref.UID] = append(parts[ref.UID], withoutManagedFields(o))
		}
	}
	for _, head := range heads {
		own := parts[head.GetUID()]
		if isDeleting(head) || int64(len(own)) != number(head, "parts") {
			notes = append(notes, fmt.Sprintf("%s is not whole: it is left out", describe(head)))
			continue
		}
		b = append(b, Entry{ChartSnapshot: withoutManagedFields(head), ChartParts: own})
	}
	return b, notes
}

// number is a number in the spec of a ChartSnapshot or a ResourceSnapshot, 0 when there is none.
func number(o *object, field string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", field)
	return n
}

// stringAt is a text in an object, empty when there is none.
func stringAt(o *object, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}

// targetOf is the target of a Release, nil when there is none, it goes, or it belongs to an earlier Release of that name.
func targetOf(rel *object, targets map[types.NamespacedName]*object) *object {
	target := targets[key(rel)]
	if target == nil || isDeleting(target) || !owned(target, rel.GetUID()) {
		return nil
	}
	return withoutManagedFields(target)
}

func owned(o *object, by types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == by })
}

func applicationOf(rel *object) types.NamespacedName {
	return types.NamespacedName{Namespace: rel.GetNamespace(), Name: rel.GetLabels()[shipper.AppLabel]}
}

// generation is a Release's place in history; those without one come first.
func generation(rel *object) int {
	n, err := strconv.Atoi(rel.GetAnnotations()[shipper.ReleaseGenerationAnnotation])
	if err != nil {
		return -1
	}
	return n
}

func key(o *object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func isDeleting(o *object) bool { return o.GetDeletionTimestamp() != nil }

// withoutManagedFields removes managedFields, which cannot be restored.
func withoutManagedFields(o *object) *object {
	if o != nil {
		o.SetManagedFields(nil)
	}
	return o
}

func byName(list []object) map[types.NamespacedName]*object {
	out := make(map[types.NamespacedName]*object, len(list))
	for _, o := range pointers(list) {
		out[key(o)] = o
	}
	return out
}

// pointers are to the objects of a list, sorted by their names.
func pointers(list []object) []*object {
	out := make([]*object, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	slices.SortFunc(out, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// page is how many objects are asked for at once; values may be large.
const page = 200

// pageOf is page, or less where objects are as large as they may be.
func pageOf(kind schema.GroupVersionKind) int64 {
	if kind == snapshotKind || kind == contentKind {
		return 8
	}
	return page
}

// selection names the kinds of a backup beside Applications.
type selection struct {
	blocks, clusters, charts bool
	// secrets adds the Secrets that Releases with resources have placed.
	secrets bool
	// namespace is Shipper's, where the Secrets of Clusters are.
	namespace string
}

// read reads a management cluster. Anything that cannot be read fails it: half a backup is none.
func read(ctx context.Context, from client.Reader, s selection) (contents, error) {
	var f contents
	for _, l := range []struct {
		kind   schema.GroupVersionKind
		into   *[]object
		wanted bool
	}{
		{applicationKind, &f.applications, true}, {releaseKind, &f.releases, true}, {installationKind, &f.installations, true},
		{capacityKind, &f.capacities, true}, {trafficKind, &f.traffics, true},
		{approvalKind, &f.approvals, true}, {notificationKind, &f.notifications, true},
		{checkKind, &f.checks, true}, {checkTargetKind, &f.checkTargets, true},
		{blockKind, &f.blocks, s.blocks}, {clusterKind, &f.clusters, s.clusters},
		{snapshotKind, &f.charts, s.charts},
		{envelopeKind, &f.envelopes, true}, {contentKind, &f.snapshots, true}, {strategyKind, &f.strategies, true},
	} {
		if !l.wanted {
			continue
		}
		var err error
		if *l.into, err = list(ctx, from, l.kind); err != nil && !unknownToOlder(l.kind, err) {
			return contents{}, err
		}
	}
	if s.secrets {
		var err error
		if f.contentSecrets, err = readContentSecrets(ctx, from, f.snapshots); err != nil {
			return contents{}, err
		}
	}
	if !s.clusters {
		return f, nil
	}
	f.secrets = map[string]*object{}
	for i := range f.clusters {
		name := f.clusters[i].GetName()
		secret, err := get(ctx, from, secretKind, types.NamespacedName{Namespace: s.namespace, Name: name})
		if err != nil {
			return contents{}, err
		}
		f.secrets[name] = secret
	}
	var err error
	f.identity, err = get(ctx, from, configMapKind, types.NamespacedName{Namespace: s.namespace, Name: shipper.IdentityName})
	return f, err
}

// unknownToOlder reports whether err is that the management cluster has no such kind, as one that an older version has set up.
func unknownToOlder(kind schema.GroupVersionKind, err error) bool {
	newer := []schema.GroupVersionKind{approvalKind, notificationKind, checkKind, checkTargetKind, envelopeKind, contentKind, strategyKind}
	return meta.IsNoMatchError(err) && slices.Contains(newer, kind)
}

// plural names objects of a kind for people.
func plural(kind string) string {
	if stem, ends := strings.CutSuffix(words[kind], "y"); ends {
		return stem + "ies"
	}
	return words[kind] + "s"
}

func list(ctx context.Context, from client.Reader, kind schema.GroupVersionKind) ([]object, error) {
	var out []object
	next := ""
	for {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := from.List(ctx, l, client.Limit(pageOf(kind)), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing %s: %w", plural(kind.Kind), err)
		}
		out = append(out, l.Items...)
		if next = l.GetContinue(); next == "" {
			return out, nil
		}
	}
}

func get(
	ctx context.Context, from client.Reader, kind schema.GroupVersionKind, name types.NamespacedName,
) (*object, error) {
	o := &object{}
	o.SetGroupVersionKind(kind)
	err := from.Get(ctx, name, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", words[kind.Kind], name, err)
	}
	return o, nil
}
