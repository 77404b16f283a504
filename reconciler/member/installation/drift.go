// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/retry"
)

// again is when an object is compared again that could not be.
const again = time.Minute

// drifting is what one pass finds of drift in one cluster.
type drifting struct {
	*installer
	policy shipper.DriftPolicy
	memory *drift.Memory[item]
	now    time.Time
	// corrected counts what is corrected.
	corrected prometheus.Counter

	found shipper.InstalledDrift
	// later is when to look again although nothing has happened; 0 for never.
	later time.Duration
}

// look compares every object of the target that was edited since it was compared last, and corrects those that are to be.
func (d *drifting) look(ctx context.Context) error {
	var objects []wanted
	for _, entry := range d.anchor.inventory {
		live, err := d.member.Metadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) {
			continue // it is brought back
		}
		if err != nil {
			return err
		}
		if live.Labels[shipper.OwnedByLabel] != d.it.Name || live.DeletionTimestamp != nil {
			continue
		}
		if entry.InPlace && live.Annotations[shipper.InstalledDigestAnnotation] != entry.Digest { // its step is about to write it
			continue
		}
		if d.policy == driftUnset && !fleet.EditedByOthers(live) {
			continue
		}
		known := d.memory.Recall(nameless(entry))
		if !known.SpeaksOf(live, entry.Digest, d.member.Session()) || d.policy == shipper.DriftCorrect && known.Drifted() {
			if objects == nil {
				if objects, err = d.render(); err != nil {
					return err
				}
			}
			if known, err = d.examine(ctx, entry, objects, known); err != nil {
				return err
			}
			d.memory.Note(nameless(entry), known)
		}
		d.describe(known)
	}
	return nil
}

// examine compares one object, and corrects it if that is to be.
func (d *drifting) examine(ctx context.Context, entry item, objects []wanted, before drift.Comparison) (drift.Comparison, error) {
	out := drift.Comparison{Session: d.member.Session(), Digest: entry.Digest, Corrected: before.Corrected, At: before.At}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(entry.gvk())
	if err := d.member.Live().Get(ctx, entry.key(), live); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	out.UID, out.Edit = live.GetUID(), fleet.EditOf(live)
	object, err := d.applied(ctx, entry, objects, live)
	if object == nil || err != nil {
		return out, err
	}
	rehearsed, err := d.rehearse(ctx, object, live)
	if retry.Rejected(err) {
		out.Problem = report.Shorten(d.called(entry)+" cannot be compared: "+retry.Within(d.discreet(err), maxSaid/2), maxSaid)
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if rehearsed.incomplete != nil {
		out.Problem = report.Shorten(d.called(entry)+" cannot be compared whole: "+
			retry.Within(d.discreet(rehearsed.incomplete), maxSaid/2), maxSaid)
	}
	changed := drift.WithoutLaterWrites(drift.Differences(rehearsed.object, live), object)
	restorable, provider := released(changed, object), providers(object, live)
	out.Fields = drift.Fields(named(entry), append(restorable, provider...), live.GetManagedFields(), d.rendering.sources.private())
	if d.rendering.sources.secret() {
		for n := range out.Fields {
			out.Fields[n].Name = d.called(entry)
		}
	}
	if d.policy != shipper.DriftCorrect || len(restorable) == 0 {
		return out, nil
	}
	if wait := out.Due(d.now); wait > 0 {
		d.later = report.Sooner(d.later, wait)
		return out, nil
	}
	if laid := rehearsed.whole; laid != nil {
		if err := d.restore(ctx, laid); err != nil {
			return out, d.about("correcting "+d.called(entry), err)
		}
		object.SetResourceVersion(laid.GetResourceVersion())
	}
	return d.correct(ctx, entry, object, out, out.Fields[len(restorable):])
}

// correct writes an object as it was released, except for the fields that remain.
func (d *drifting) correct(
	ctx context.Context, entry item, object *unstructured.Unstructured, c drift.Comparison, remaining []shipper.DriftedField,
) (drift.Comparison, error) {
	if err := applyset.Apply(ctx, d.member.Client(), object, client.ForceOwnership); err != nil {
		return c, d.about("correcting "+d.called(entry), err)
	}
	log.FromContext(ctx).Info("Corrected what was edited", "cluster", d.member.Name, "object", d.called(entry))
	d.events = append(d.events, drift.CorrectedEvent(d.member.Name, d.called(entry), c.Fields))
	d.corrected.Inc()
	c.Edit, c.Fields = fleet.EditOf(object), remaining
	c.Corrected, c.At = c.Corrections(d.now)+1, d.now
	return c, nil
}

// applied is an object as write applies it, without fields that an autoscaler or a user scales; nil if objects no longer has it.
func (d *drifting) applied(
	ctx context.Context, entry item, objects []wanted, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	for _, w := range objects {
		if w.digest != entry.Digest || w.content.GetName() != entry.Name || w.content.GetKind() != entry.Kind {
			continue
		}
		if entry.InPlace {
			return w.stepped(live), nil
		}
		there := &metav1.PartialObjectMetadata{}
		there.OwnerReferences, there.Annotations = live.GetOwnerReferences(), live.GetAnnotations()
		object, err := d.content(ctx, step{wanted: w, item: entry, live: there})
		if err != nil {
			return nil, err
		}
		drift.WithoutScaled(object, live.GetManagedFields())
		return object, nil
	}
	return nil, nil
}

// decidedBySteps are the fields of workloads in place that their steps decide.
var decidedBySteps = [][]string{
	{"metadata", "annotations", shipper.BaseAnnotation}, {"spec", "replicas"}, {"spec", "updateStrategy", "rollingUpdate", "partition"},
}

// stepped is a workload in place as it was written at its step, if it is still the one that was read.
func (w wanted) stepped(live *unstructured.Unstructured) *unstructured.Unstructured {
	object := w.in(live.GetNamespace())
	for _, field := range decidedBySteps {
		unstructured.RemoveNestedField(object.Object, field...)
		if value, found, err := unstructured.NestedFieldNoCopy(live.Object, field...); found && err == nil {
			_ = unstructured.SetNestedField(object.Object, value, field...) // the chart's are maps, or the API server refuses them
		}
	}
	object.SetOwnerReferences(slices.DeleteFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return !isAnchor(ref) }))
	object.SetResourceVersion(live.GetResourceVersion())
	return object
}

// describe adds what is known of an object to what status says.
func (d *drifting) describe(c drift.Comparison) {
	if wait := c.Due(d.now); c.Drifted() && d.policy == shipper.DriftCorrect && wait > 0 {
		d.later = report.Sooner(d.later, wait)
	}
	drift.Add(&d.found, c)
}

// nameless is an item by what it is, and not by what was written.
func nameless(i item) item {
	i.Digest = ""
	return i
}

// named is a field of an object of a target.
func named(i item) shipper.DriftedField {
	return shipper.DriftedField{APIVersion: i.APIVersion, Kind: i.Kind, Name: i.Name}
}

// drift is what is to be said of drift in a cluster, nil when nothing is, and when to look again.
func (w *Worker) drift(ctx context.Context, i *installer) (*shipper.InstalledDrift, time.Duration) {
	app := i.it.Labels[shipper.AppLabel]
	known := find(i.it.Status.Clusters, i.member.Name).Drift
	policy, err := w.driftPolicy(ctx, i.it.Namespace, app)
	target := client.ObjectKeyFromObject(i.it)
	switch {
	case err != nil:
		return known, again
	case policy == shipper.DriftIgnore:
		w.drifts.Forget(target)
		return nil, 0
	}
	d := &drifting{
		installer: i, policy: policy, memory: w.drifts.Of(target, i.member.Name), now: w.clock.Now(),
		corrected: w.corrected.WithLabelValues(i.it.Namespace, app, i.member.Name),
	}
	if err := d.look(ctx); err != nil {
		log.FromContext(ctx).Info("Cannot compare what is installed", "cluster", i.member.Name, "reason", i.discreet(err).Error())
		return known, again
	}
	if d.found.Objects == 0 && d.found.Message == "" {
		return nil, d.later
	}
	return &d.found, d.later
}
