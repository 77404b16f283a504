// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
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
)

// Bounds of what status says of drift, and when an object is compared again that could not be.
const (
	maxDrifted = 20
	again      = time.Minute
)

// drifting is what one pass finds of drift in one cluster.
type drifting struct {
	*installer
	policy shipper.DriftPolicy
	memory *driftMemory
	now    time.Time
	// corrected counts what is corrected.
	corrected prometheus.Counter

	found shipper.InstalledDrift
	// later is when to look again although nothing has happened; 0 for never.
	later time.Duration
}

// look compares every object of the target that was edited since it was compared last, and corrects those that are to be.
func (d *drifting) look(ctx context.Context) error {
	t := target(d.it, d.member.KubeVersion(), d.member.APIVersions())
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
		if d.policy == driftUnset && !fleet.EditedByOthers(live) {
			continue
		}
		known := d.memory.recall(entry)
		if !known.speaksOf(live, entry, d.member.Session()) || d.policy == shipper.DriftCorrect && known.drifted() {
			if objects == nil {
				if objects, err = d.rendering.inCluster(d.member.Name, t); err != nil {
					return err
				}
			}
			if known, err = d.examine(ctx, entry, objects, known); err != nil {
				return err
			}
			d.memory.note(entry, known)
		}
		d.describe(known)
	}
	return nil
}

// examine compares one object, and corrects it if that is to be.
func (d *drifting) examine(ctx context.Context, entry item, objects []wanted, before comparison) (comparison, error) {
	out := comparison{session: d.member.Session(), digest: entry.Digest, corrected: before.corrected, at: before.at}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(entry.gvk())
	if err := d.member.Live().Get(ctx, entry.key(), live); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	out.uid, out.edit = live.GetUID(), fleet.EditOf(live)
	object, err := d.applied(ctx, entry, objects, live)
	if object == nil || err != nil {
		return out, err
	}
	rehearsed, err := d.rehearse(ctx, object, live)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		out.problem = report.Shorten(fmt.Sprintf("%s cannot be compared: %v", d.called(entry), d.discreet(err)), maxSaid)
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if rehearsed.incomplete != nil {
		out.problem = report.Shorten(fmt.Sprintf("%s cannot be compared whole: %v", d.called(entry), d.discreet(rehearsed.incomplete)), maxSaid)
	}
	changed := withoutLaterWrites(differences(rehearsed.object, live), object)
	restorable, provider := released(changed, object), providers(object, live)
	out.fields = reported(entry, append(restorable, provider...), live.GetManagedFields(), d.rendering.sources.secret())
	if d.rendering.sources.secret() {
		for n := range out.fields {
			out.fields[n].Name = d.called(entry)
		}
	}
	if d.policy != shipper.DriftCorrect || len(restorable) == 0 {
		return out, nil
	}
	if wait := out.due(d.now); wait > 0 {
		d.later = report.Sooner(d.later, wait)
		return out, nil
	}
	if laid := rehearsed.whole; laid != nil {
		if err := d.restore(ctx, laid); err != nil {
			return out, d.about("correcting "+d.called(entry), err)
		}
		object.SetResourceVersion(laid.GetResourceVersion())
	}
	return d.correct(ctx, entry, object, out, out.fields[len(restorable):])
}

// correct writes an object as it was released, except for the fields that remain.
func (d *drifting) correct(
	ctx context.Context, entry item, object *unstructured.Unstructured, c comparison, remaining []shipper.DriftedField,
) (comparison, error) {
	if err := apply(ctx, d.member, object); err != nil {
		return c, d.about("correcting "+d.called(entry), err)
	}
	log.FromContext(ctx).Info("Corrected what was edited", "cluster", d.member.Name, "object", d.called(entry))
	d.events = append(d.events, corrected(d.member.Name, d.called(entry), c.fields))
	d.corrected.Inc()
	c.edit, c.fields = fleet.EditOf(object), remaining
	c.corrected, c.at = c.corrections(d.now)+1, d.now
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
		there := &metav1.PartialObjectMetadata{}
		there.OwnerReferences, there.Annotations = live.GetOwnerReferences(), live.GetAnnotations()
		object, err := d.content(ctx, step{wanted: w, item: entry, live: there})
		if err != nil {
			return nil, err
		}
		withoutScaled(object, live.GetManagedFields())
		return object, nil
	}
	return nil, nil
}

// describe adds what is known of an object to what status says.
func (d *drifting) describe(c comparison) {
	if c.problem != "" {
		d.found.Message = c.problem
	}
	if !c.drifted() {
		return
	}
	if wait := c.due(d.now); d.policy == shipper.DriftCorrect && wait > 0 {
		d.later = report.Sooner(d.later, wait)
	}
	d.found.Objects++
	room := min(maxDrifted-len(d.found.Fields), len(c.fields))
	d.found.Fields = append(d.found.Fields, c.fields[:room]...)
	d.found.Omitted += int32(len(c.fields) - room)
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
		w.drifts.forget(target)
		return nil, 0
	}
	d := &drifting{
		installer: i, policy: policy, memory: w.drifts.of(target, i.member.Name), now: w.clock.Now(),
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
