// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/survey"
)

// defaultUnavailablePeriod is that of an absent unavailablePeriod.
const defaultUnavailablePeriod = time.Minute

// Reasons of objects that are not healthy, beside those of kstatus.
const (
	justWritten = "UnavailablePeriod"
	notReady    = "NotReady"
	notJudged   = "ExpressionFailed"
)

// survey sums up how the objects are that the anchor lists. Nothing is said when they cannot all be read.
func (p *pass) survey(ctx context.Context) *shipper.InstalledObjects {
	all, errs := make([]survey.Seen, len(p.anchor.inventory)), make([]error, len(p.anchor.inventory))
	waits := make([]time.Duration, len(all))
	ready := p.worker.judgements.rules(ctx, p.Target)
	each(p.worker.Parallel, len(all), func(i int) {
		e := p.anchor.inventory[i]
		all[i] = survey.Seen{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: p.fieldOf(e).Namespace, Name: e.Name}
		all[i].Health, waits[i], errs[i] = p.healthOf(ctx, e, ready)
	})
	for i := range all {
		if errs[i] != nil {
			return nil
		}
		p.out.Later = report.Sooner(p.out.Later, waits[i])
	}
	return survey.Sum(all)
}

// healthOf is how one object is. later is when that may change although nothing happens; 0 for never.
func (p *pass) healthOf(ctx context.Context, e entry, ready *objects.Ready) (h fleet.Health, later time.Duration, err error) {
	live, h, err := p.Cluster.Health(ctx, e.gvk(), e.name())
	switch {
	case isGone(err) && p.now.Unix() == e.At: // the watch has not delivered it yet
		return fleet.Health{Status: string(kstatus.InProgressStatus)}, 0, nil
	case isGone(err):
		return fleet.Health{Status: string(kstatus.NotFoundStatus)}, 0, nil
	case err != nil:
		return h, 0, err
	case ready.Judges(e.key().GroupKind()) && live.DeletionTimestamp == nil:
		if h.Unreadable || h.Healthy() {
			h, err = p.judge(ctx, e, ready)
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

// judge asks the ready rules, once for each version of an object.
func (p *pass) judge(ctx context.Context, e entry, ready *objects.Ready) (fleet.Health, error) {
	live, err := p.Cluster.Metadata(ctx, e.gvk(), e.name())
	if err != nil {
		return fleet.Health{}, err
	}
	at := judged{client.ObjectKeyFromObject(p.Target), p.Name, e.key()}
	version := string(live.UID) + " " + live.ResourceVersion
	if h, known := p.worker.judgements.recall(at, version); known {
		return h, nil
	}
	whole, err := p.get(ctx, e)
	if err != nil {
		return fleet.Health{}, err
	}
	h := fleet.Health{Status: string(kstatus.CurrentStatus)}
	switch good, err := ready.Evaluate(ctx, whole); {
	case err != nil:
		h = fleet.Health{Status: string(kstatus.InProgressStatus), Reason: notJudged, Message: err.Error()}
	case !good:
		h = fleet.Health{Status: string(kstatus.InProgressStatus), Reason: notReady}
	}
	if whole.GetResourceVersion() == live.ResourceVersion {
		p.worker.judgements.note(at, version, h)
	}
	return h, nil
}

// judged is an object that ready rules judge.
type judged struct {
	target  types.NamespacedName
	cluster string
	object  objects.Key
}

// judgement is what they said of a version of it.
type judgement struct {
	version string
	health  fleet.Health
}

// judgements are compiled rules and what they said, by target. They are lost with the process. The zero value is usable.
type judgements struct {
	mu    sync.Mutex
	ready map[types.NamespacedName]compiled
	known map[judged]judgement
}

// compiled are the ready rules of a target.
type compiled struct {
	text  string
	ready *objects.Ready
}

// rules compiles the ready rules of a target, once. The webhook has admitted them; if they do not compile, kstatus judges.
func (j *judgements) rules(ctx context.Context, it *shipper.InstallationTarget) *objects.Ready {
	if len(it.Spec.Resources.Ready) == 0 {
		return nil
	}
	key := client.ObjectKeyFromObject(it)
	text, err := json.Marshal(it.Spec.Resources.Ready)
	if err != nil {
		return nil
	}
	j.mu.Lock()
	known, found := j.ready[key]
	j.mu.Unlock()
	if found && known.text == string(text) {
		return known.ready
	}
	ready, err := objects.CompileReady(ctx, it.Spec.Resources.Ready)
	if err != nil {
		log.FromContext(ctx).Info("Ready rules are ignored", "target", key, "reason", err.Error())
		return nil
	}
	j.forget(key)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ready == nil {
		j.ready = map[types.NamespacedName]compiled{}
	}
	j.ready[key] = compiled{string(text), ready}
	return ready
}

func (j *judgements) recall(at judged, version string) (fleet.Health, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known, found := j.known[at]
	return known.health, found && known.version == version
}

func (j *judgements) note(at judged, version string, h fleet.Health) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known == nil {
		j.known = map[judged]judgement{}
	}
	j.known[at] = judgement{version, h}
}

// forget drops all of a target.
func (j *judgements) forget(target types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ready, target)
	for at := range j.known {
		if at.target == target {
			delete(j.known, at)
		}
	}
}
