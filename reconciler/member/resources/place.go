// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	overrides "shipper.dev/shipper/chart/override"
)

// pass is one pass of a target in one cluster.
type pass struct {
	Task
	worker *Worker
	spec   shipper.TargetResources
	how    shipper.Apply
	rules  rules
	now    time.Time

	anchor *anchor
	items  []*item
	// placing identifies what is placed in this cluster: the content, and what overrides change of it.
	placing string
	// lost is set once further requests make no sense.
	lost atomic.Bool
	out  Result
}

func (w *Worker) pass(t Task) *pass {
	p := &pass{Task: t, worker: w, spec: *t.Target.Spec.Resources, now: w.Clock.Now()}
	p.placing = placing(p.spec.Snapshot, t.Overrides)
	p.Cluster = withGrants{t.Cluster}
	if p.spec.Apply != nil {
		p.how = *p.spec.Apply
	}
	p.how.Type = cmp.Or(p.how.Type, shipper.ApplyServerSide)
	p.rules = rules{
		owner: ownerOf(t.Target), app: t.Target.Labels[shipper.AppLabel], takeOver: cmp.Or(p.how.TakeOver, shipper.TakeOverNever),
		halt: t.Policy == shipper.DriftHalt,
	}
	return p
}

// Place makes a cluster that the target lists have the content of the target, if it is the one that writes there.
func (w *Worker) Place(ctx context.Context, t Task) Result {
	switch writer := t.Siblings.Writer; {
	case writer == nil:
		return Result{Ended: true, Err: waiting("the Release is no longer in effect")}
	case writer.UID != t.Target.UID:
		return Result{
			Superseded: true, Reason: shipper.SupersededByNewer, Message: fmt.Sprintf("Release %q writes in this cluster", writer.Name),
		}
	}
	p := w.pass(t)
	if p.how.Type == shipper.ApplyReportDiff {
		p.out.Err = p.reportDiff(ctx)
		return p.out
	}
	if p.out.Err = p.place(ctx); p.out.General == nil && p.anchor != nil && p.anchor.claim == nil && !p.lost.Load() {
		p.reportDrift(ctx)
		p.out.Objects = p.survey(ctx)
	}
	return p.out
}

// place writes what has to be written. At rest caches decide, and the content is not read.
func (p *pass) place(ctx context.Context) error {
	var err error
	if p.anchor, err = p.readAnchor(ctx, p.Cluster.Client()); err != nil {
		return err
	}
	if rests, err := p.rests(ctx, p.by(nil, p.placing)); rests || err != nil {
		return err
	}
	if p.anchor, err = p.readAnchor(ctx, p.Cluster.Live()); err != nil {
		return err
	}
	if p.anchor != nil && p.anchor.claim != nil {
		return p.anchor.claim
	}
	if p.anchor != nil && p.anchor.deleting {
		return waiting("the list of an earlier placement is still being removed")
	}
	if p.anchor != nil && p.anchor.placed == p.placing {
		intact, err := p.intact(ctx)
		if err != nil {
			return err
		}
		if intact { // another Release with equal content
			return p.record(ctx, p.anchor.inventory, p.placing)
		}
	}
	all, err := p.load(ctx)
	if overrides.Failed(err) { // of this cluster alone
		return err
	}
	if err != nil {
		p.out.General = err
		return nil
	}
	p.observeAll(ctx, all)
	return p.converge(ctx, all)
}

// rests reports whether the cached anchor says that this target has placed its content, and caches show that it is still there.
func (p *pass) rests(ctx context.Context, want *anchor) (bool, error) {
	if p.anchor == nil || p.anchor.claim != nil || p.anchor.deleting {
		return false, nil
	}
	if want.inventory = p.anchor.inventory; !p.anchor.says(want) {
		return false, nil
	}
	return p.intact(ctx)
}

// record makes the anchor say that this target wrote it.
func (p *pass) record(ctx context.Context, inventory []entry, placed string) error {
	written, err := p.writeAnchor(ctx, p.anchor, p.by(inventory, placed))
	if err == nil {
		p.anchor = written
	}
	return err
}

// observeAll observes all objects, and compares those that are to be compared before they are decided about.
func (p *pass) observeAll(ctx context.Context, all []*item) {
	each(p.worker.Parallel, len(all), func(i int) { p.decideOne(ctx, all[i]) })
	var left []*item
	for _, s := range all {
		if s.action == leave || s.action == refuse {
			left = append(left, s)
		}
		if s.compared != nil && s.action == leave {
			p.addDiff(*s.compared)
		}
	}
	p.pollForeign(left)
}

// decideOne observes one object. An object that is left alone is compared for the status.
func (p *pass) decideOne(ctx context.Context, s *item) {
	if p.lost.Load() {
		s.failed = errSkipped
		return
	}
	p.observe(ctx, s)
	if s.failed == nil && (s.action == compare || s.action == leave) {
		err := p.compareForeign(ctx, s)
		if apierrors.IsNotFound(err) { // it was deleted since it was looked at
			s.live, err = nil, nil
		}
		if s.failed = err; err == nil {
			s.action = p.rules.decide(s)
		}
	}
	if s.failed != nil && isLost(ctx, s.failed) {
		p.lost.Store(true)
	}
}

// converge writes the anchor with all that will be there, then the objects, removes what is no longer in the content, and writes the
// anchor with what is there. A pass that is killed in between leaves nothing that the anchor does not list.
func (p *pass) converge(ctx context.Context, all []*item) error {
	if p.lost.Load() {
		return p.problems(all)
	}
	union, dropped := plan(all, p.anchor)
	writes := slices.ContainsFunc(all, func(s *item) bool { return s.action.writes() || s.action == await })
	if writes || len(dropped) > 0 || p.anchor == nil {
		if err := p.record(ctx, union, ""); err != nil {
			return err
		}
	}
	p.writeAll(ctx, all)
	if p.lost.Load() {
		return p.problems(all)
	}
	left, err := p.remove(ctx, dropped)
	if err != nil && isLost(ctx, err) {
		return err
	}
	inventory, whole := placed(all, p.now.Unix())
	digest := ""
	if whole && len(left) == 0 && err == nil {
		digest = p.placing
	}
	if err := p.record(ctx, append(inventory, left...), digest); err != nil {
		return err
	}
	if err == nil && len(left) > 0 {
		err = waiting("waiting until these are gone: %s", list(left))
	}
	return p.problems(all, err)
}

// writeAll writes what is to be written: objects of one kind side by side, kinds one after the other.
func (p *pass) writeAll(ctx context.Context, all []*item) {
	defined := defines(all)
	for len(all) > 0 {
		kind := all[0].want.gvk().GroupKind()
		n := slices.IndexFunc(all, func(s *item) bool { return s.want.gvk().GroupKind() != kind })
		if n < 0 {
			n = len(all)
		}
		each(p.worker.Parallel, n, func(i int) { p.carryOut(ctx, all[i], defined) })
		all = all[n:]
	}
}

// carryOut writes one object. One of a kind that the content defines is looked at again: the definition may be served by now.
func (p *pass) carryOut(ctx context.Context, s *item, defined map[string]bool) {
	if s.action == await && defined[kindOf(s)] {
		p.decideOne(ctx, s)
	}
	if s.failed != nil || !s.action.writes() || p.lost.Load() {
		return
	}
	if s.failed = p.write(ctx, s); s.failed != nil && isLost(ctx, s.failed) {
		p.lost.Store(true)
	}
}

// kindOf is the kind of an object as defines has it.
func kindOf(s *item) string { return s.want.Kind + "." + s.want.gvk().Group }

// problems are the errors about objects, and others. A Namespace of the content that cannot be written is the only problem of what is in
// it.
func (p *pass) problems(all []*item, more ...error) error {
	defined, unwritten := defines(all), map[string]bool{}
	for _, s := range all {
		if s.failed != nil && s.want.gvk().GroupKind() == namespaceKind {
			unwritten[s.want.Name] = true
		}
	}
	for _, s := range all {
		if lacksNamespace(s.failed) && unwritten[s.want.key().Namespace] {
			continue
		}
		if err := p.problemOf(s, defined[kindOf(s)]); err != nil {
			more = append(more, err)
		}
	}
	return joined(more, remediesFor(p.rules.takeOver))
}
