// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/inplace"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/retry"
)

// pass is one pass over one workload in one cluster.
type pass struct {
	*Worker
	*workload

	member *fleet.Member
	all    []installation.Installed

	is     live
	choice choice
	// byUser is true for a StatefulSet whose Pods users replace.
	byUser bool
	// wrote is true if the object was written in this pass, or was found to be written by an earlier one that no cache shows.
	wrote bool
}

// run does what is due, and returns the shares of all sides.
func (p *pass) run(ctx context.Context) ([]Share, error) {
	err := p.act(ctx)
	shares := make([]Share, len(p.sides))
	for i := range p.sides {
		shares[i] = p.share(i)
	}
	return shares, err
}

// concerned is the Release that an error is about.
func (p *pass) concerned() string {
	if p.choice.holder >= 0 {
		return p.sides[p.choice.holder].name
	}
	return p.sides[max(0, p.choice.contender)].name
}

// act writes the workload, or evicts one of its Pods.
func (p *pass) act(ctx context.Context) error {
	p.choice = choice{contender: -1, holder: -1}
	cached, err := look(ctx, p.member.Client(), p.kind.Kind, p.key)
	if err != nil {
		return err
	}
	p.is = liveOf(cached)
	if p.choice = p.pick(p.is); p.choice.holder < 0 {
		return nil
	}
	var known facts
	if p.kind.Kind == statefulSet && p.choice.contender >= 0 {
		if known, err = p.factsOf(ctx, p.sides[p.choice.contender]); err != nil {
			return err
		}
	}
	p.byUser = known.onDelete
	p.decide(known)
	if !p.differs(p.choice, p.is) {
		if p.is.leaving, err = p.leaving(ctx, cached); err != nil {
			return err
		}
		return p.evict(ctx)
	}
	if err := p.refusedBefore(cached); err != nil {
		return err
	}
	found, err := look(ctx, p.member.Live(), p.kind.Kind, p.key)
	if err != nil {
		return err
	}
	p.is = liveOf(found)
	p.decide(known)
	if p.wrote = true; !p.differs(p.choice, p.is) { // a cache is late
		return nil
	}
	if err := p.write(ctx, found); err != nil {
		p.wrote = false
		p.noteRefusal(found, err)
		return err
	}
	return nil
}

// refusal is the key of what the API server has said of the holder's object.
func (p *pass) refusal() string {
	return fmt.Sprint(p.member.Name, " ", p.kind.Kind, " ", p.key, " ", p.sides[p.choice.holder].item.Digest)
}

// refusedBefore is why the API server has refused the holder's object a moment ago, for this very object that is there.
func (p *pass) refusedBefore(there client.Object) error {
	known, ok := p.refused.Get(p.refusal())
	if !ok || there == nil || known.uid != there.GetUID() || known.generation != there.GetGeneration() ||
		p.clock.Since(known.at) >= refusedFor {
		return nil
	}
	return known.err
}

// noteRefusal remembers that the API server has refused the holder's object.
func (p *pass) noteRefusal(there client.Object, err error) {
	if reason, _ := retry.ClassifyInCluster(err); reason == shipper.ChartError && there != nil {
		p.refused.Put(p.refusal(), refusal{there.GetUID(), there.GetGeneration(), p.clock.Now(), err}, 1)
	}
}

// decide chooses by what is there.
func (p *pass) decide(known facts) {
	p.choice = p.pick(p.is)
	if p.choice.holder < 0 {
		return
	}
	if p.choice.contender < 0 {
		p.choice = p.aim(p.choice, nil, p.is)
		return
	}
	var set *rules.Set
	if p.kind.Kind == statefulSet {
		set = known.set(p.sides[p.choice.contender].item.Replicas)
	}
	p.choice = p.aim(p.choice, set, p.is)
	if p.byUser {
		p.choice.goal.Partition = p.is.partition
	}
}

// write applies the object of the holder.
func (p *pass) write(ctx context.Context, found client.Object) error {
	holder := p.sides[p.choice.holder]
	stored, err := holder.rendered.Find(ctx, p.member, holder.target, *holder.item)
	if err != nil {
		return err
	}
	if err := p.shape(stored.Object); err != nil {
		return err
	}
	var was *metav1.PartialObjectMetadata
	if found != nil {
		was = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			UID: found.GetUID(), ResourceVersion: found.GetResourceVersion(), Labels: found.GetLabels(), Annotations: found.GetAnnotations(),
			OwnerReferences: found.GetOwnerReferences(), DeletionTimestamp: found.GetDeletionTimestamp(),
		}}
	}
	return stored.Write(ctx, p.member, was, p.all)
}

// shape sets the fields that steps change.
func (p *pass) shape(o *unstructured.Unstructured) error {
	if p.kind.Kind == daemonSet {
		return nil
	}
	err := unstructured.SetNestedField(o.Object, int64(p.choice.goal.Replicas), "spec", "replicas")
	if err == nil && p.kind.Kind == statefulSet && p.choice.contender >= 0 && !p.byUser {
		partition := int64(p.choice.goal.Partition)
		if !factsOf(o).onDelete && (partition > 0 || factsOf(o).partition > 0 || p.is.partition > 0) {
			err = unstructured.SetNestedField(o.Object, partition, "spec", "updateStrategy", "rollingUpdate", "partition")
		}
	}
	if base := p.base(p.choice); err == nil && (base != "" || p.is.base != "") { // others may have set it, and own it then
		annotations := o.GetAnnotations()
		annotations[shipper.BaseAnnotation] = base
		o.SetAnnotations(annotations)
	}
	if err != nil {
		return fmt.Errorf("setting replicas and partition: %w", err)
	}
	return nil
}
