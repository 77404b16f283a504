// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/drift"
)

// again is when an object is compared again that could not be.
const again = time.Minute

// suspect is an object that was edited since it was compared.
type suspect struct {
	item  *item
	entry entry
	known drift.Comparison
	err   error
}

// reportDrift compares the placed objects that were edited since they were compared last, and corrects those that are to be.
func (p *pass) reportDrift(ctx context.Context) {
	target := client.ObjectKeyFromObject(p.Target)
	if p.Policy == shipper.DriftIgnore {
		p.worker.drifts.Forget(target)
		return
	}
	memory := p.worker.drifts.Of(target, p.Name)
	var found shipper.InstalledDrift
	var suspects []*suspect
	for _, e := range p.anchor.inventory {
		if e.Pending {
			continue
		}
		live, err := p.Cluster.Metadata(ctx, e.gvk(), e.name())
		if err != nil || live.UID != e.UID || live.DeletionTimestamp != nil || p.Policy == "" && !fleet.EditedByOthers(live) {
			continue
		}
		known := memory.Recall(e.key())
		if !known.SpeaksOf(live, e.Digest, p.Cluster.Session()) || p.Policy == shipper.DriftCorrect && known.Drifted() {
			suspects = append(suspects, &suspect{entry: e, known: known})
		} else {
			drift.Add(&found, known)
		}
	}
	if err := p.examineAll(ctx, suspects); err != nil {
		log.FromContext(ctx).Info("Cannot compare what is placed", "cluster", p.Name, "reason", err.Error())
		p.out.Later = report.Sooner(p.out.Later, again)
	}
	for _, s := range suspects {
		if s.err == nil {
			memory.Note(s.entry.key(), s.known)
			drift.Add(&found, s.known)
		}
		if wait := s.known.Due(p.now); p.Policy == shipper.DriftCorrect && s.known.Drifted() && wait > 0 {
			p.out.Later = report.Sooner(p.out.Later, wait)
		}
	}
	p.conclude(&found)
}

// conclude sets what status says of drift.
func (p *pass) conclude(found *shipper.InstalledDrift) {
	if found.Objects == 0 && found.Message == "" {
		return
	}
	p.out.Drift = found
	if found.Objects > 0 && p.rules.halt {
		p.out.Reason = shipper.DriftFound
		p.out.Message = fmt.Sprintf("%d objects were edited and are left alone until the next Release, %s %s %s first", found.Objects,
			found.Fields[0].Kind, found.Fields[0].Name, found.Fields[0].Field)
	}
}

// examineAll examines objects side by side, and returns an error that one of them met.
func (p *pass) examineAll(ctx context.Context, suspects []*suspect) error {
	if len(suspects) == 0 {
		return nil
	}
	all, err := p.load(ctx)
	if err != nil {
		for _, s := range suspects {
			s.err = err
		}
		return err
	}
	content := map[string]*item{}
	for _, s := range all {
		content[s.want.key().String()+s.want.Digest] = s
	}
	events := make([]*report.Event, len(suspects))
	each(p.worker.Parallel, len(suspects), func(i int) {
		s := suspects[i]
		if s.item = content[s.entry.key().String()+s.entry.Digest]; s.item != nil {
			events[i], s.err = p.examine(ctx, s)
		}
	})
	for i, s := range suspects {
		if s.err != nil {
			err = s.err
		}
		if events[i] != nil {
			p.out.Events = append(p.out.Events, *events[i])
			p.worker.Corrected(p.Target.Namespace, p.rules.app, p.Name)
		}
	}
	return err
}

// examine compares one object, and corrects it if that is to be.
func (p *pass) examine(ctx context.Context, s *suspect) (*report.Event, error) {
	live, err := p.get(ctx, s.entry)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	out := drift.Comparison{
		Session: p.Cluster.Session(), UID: live.GetUID(), Edit: fleet.EditOf(live), Digest: s.entry.Digest,
		Corrected: s.known.Corrected, At: s.known.At,
	}
	managed, full, err := p.differ(ctx, p.marks(s.item), live)
	if out.Problem = problemOfComparison(s.entry, err); out.Problem == "" && err != nil {
		return nil, err
	}
	out.Fields = p.fields(s.entry, append(managed, full...), live)
	s.known = out
	if p.Policy != shipper.DriftCorrect || len(managed) == 0 || out.Due(p.now) > 0 {
		return nil, nil
	}
	fixed := *s.item
	fixed.live, fixed.action, fixed.managed = metadataOf(live), write, live.GetManagedFields()
	if err := p.write(ctx, &fixed); err != nil {
		return nil, err
	}
	event := drift.CorrectedEvent(p.Name, s.entry.key().String(), out.Fields)
	s.known.Corrected, s.known.At = out.Corrections(p.now)+1, p.now
	s.known.Fields, s.known.Edit = out.Fields[len(managed):], ""
	return &event, nil
}
