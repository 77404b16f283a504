// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"time"

	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/survey"
)

// defaultUnavailablePeriod is that of an absent unavailablePeriod.
const defaultUnavailablePeriod = time.Minute

// maxDelivery is how long a watch may take to deliver what was written. A cluster whose watches are later is lost.
const maxDelivery = 10 * time.Second

// Reasons of objects that are not healthy, beside those of kstatus.
const (
	justWritten = "UnavailablePeriod"
	notReady    = "NotReady"
	notJudged   = "ExpressionFailed"
	postponed   = "NotJudgedYet"
)

// survey sums up how the objects are that the anchor lists. Nothing is said when they cannot all be read.
func (p *pass) survey(ctx context.Context) *shipper.InstalledObjects {
	all, errs := make([]survey.Seen, len(p.anchor.inventory)), make([]error, len(p.anchor.inventory))
	waits := make([]time.Duration, len(all))
	ready := p.evaluator(ctx)
	each(p.worker.Parallel, len(all), func(i int) {
		e := p.anchor.inventory[i]
		all[i] = survey.Seen{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: p.fieldOf(e).Namespace, Name: e.Name}
		all[i].Health, waits[i], errs[i] = p.healthOf(ctx, e, ready)
	})
	ready.keep(p.anchor.inventory)
	for i := range all {
		if errs[i] != nil {
			return nil
		}
		p.out.Later = report.Sooner(p.out.Later, waits[i])
	}
	return survey.Sum(all)
}

// healthOf is how one object is. later is when that may change although nothing happens; 0 for never.
func (p *pass) healthOf(ctx context.Context, e entry, ready *evaluator) (h fleet.Health, later time.Duration, err error) {
	live, h, err := p.Cluster.Health(ctx, e.gvk(), e.name())
	switch {
	case isGone(err) && p.now.Unix() == e.At: // the watch has not delivered it yet
		return fleet.Health{Status: string(kstatus.InProgressStatus)}, 0, nil
	case isGone(err):
		return fleet.Health{Status: string(kstatus.NotFoundStatus)}, 0, nil
	case err != nil:
		return h, 0, err
	case !marked(p.rules.owner, p.rules.app, e.Digest, live) && p.undelivered(e) > 0: // the health is that of the version before
		return fleet.Health{Status: string(kstatus.InProgressStatus)}, p.undelivered(e), nil
	case ready.judges(e.key().GroupKind()) && live.DeletionTimestamp == nil:
		if h.Unreadable || h.Healthy() {
			return p.judge(ctx, e, ready)
		}
		return h, 0, err
	case h.Unreadable:
		period := cmp.Or(p.spec.UnavailablePeriod.Value(), defaultUnavailablePeriod)
		if wait := time.Unix(e.At, 0).Add(period).Sub(p.now); wait > 0 {
			return fleet.Health{Status: string(kstatus.InProgressStatus), Reason: justWritten}, wait, nil
		}
	}
	return h, 0, nil
}

// undelivered is for how long yet a watch may not have delivered the last write of an object.
func (p *pass) undelivered(e entry) time.Duration {
	return time.Unix(e.At, 0).Add(maxDelivery).Sub(p.now)
}

// judge asks the ready rules, once for each version of an object and text of rules.
func (p *pass) judge(ctx context.Context, e entry, ready *evaluator) (h fleet.Health, later time.Duration, err error) {
	live, err := p.Cluster.Metadata(ctx, e.gvk(), e.name())
	if err != nil {
		return fleet.Health{}, 0, err
	}
	if h, known := ready.recall(live, e.key().GroupKind()); known {
		return h, 0, nil
	}
	waiting := fleet.Health{Status: string(kstatus.InProgressStatus), Reason: postponed}
	if ready.exhausted() {
		return waiting, judgeNext, nil
	}
	whole, err := p.get(ctx, e)
	if err != nil {
		return fleet.Health{}, 0, err
	}
	h, judged := ready.evaluate(ctx, whole)
	switch {
	case ctx.Err() != nil:
		return fleet.Health{}, 0, ctx.Err()
	case !judged:
		return waiting, judgeNext, nil
	}
	return h, 0, nil
}
