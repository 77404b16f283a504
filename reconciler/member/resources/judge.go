// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/fleet"
)

const (
	// maxCost bounds the evaluations of ready rules in one pass, in units of CEL: about 1 s of one core.
	maxCost = 10_000_000
	// judgeNext is when the next pass judges what was past maxCost.
	judgeNext = 2 * time.Second
)

// judgement is what ready rules said of a version of an object.
type judgement struct {
	version, rules string
	health         fleet.Health
}

// site is an Application in a cluster.
type site struct{ cluster, owner string }

// judged are the judgements of the objects at a site, and the target that needed them last.
type judged struct {
	target types.NamespacedName
	known  map[types.UID]judgement
}

// compiled are the ready rules of a target.
type compiled struct {
	text  string
	ready *objects.Ready
}

// judgements are compiled rules by target, and what they said by site: the next Release judges only what has changed. They are lost with
// the process. The zero value is usable; it is safe for concurrent use.
type judgements struct {
	mu    sync.Mutex
	ready map[types.NamespacedName]compiled
	sites map[site]judged
}

// compile compiles the ready rules of a target, once. The webhook has admitted them; if they do not compile, kstatus judges.
func (j *judgements) compile(ctx context.Context, target types.NamespacedName, rules []shipper.ReadyRule) *objects.Ready {
	text, err := json.Marshal(rules)
	if err != nil || len(rules) == 0 {
		return nil
	}
	j.mu.Lock()
	known, found := j.ready[target]
	j.mu.Unlock()
	if found && known.text == string(text) {
		return known.ready
	}
	ready, err := objects.CompileReady(ctx, rules)
	if err != nil {
		log.FromContext(ctx).Info("Ready rules are ignored", "target", target, "reason", err.Error())
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ready == nil {
		j.ready = map[types.NamespacedName]compiled{}
	}
	j.ready[target] = compiled{string(text), ready}
	return ready
}

// at are the judgements at a site.
func (j *judgements) at(at site) map[types.UID]judgement {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sites[at].known
}

// set replaces the judgements at a site.
func (j *judgements) set(at site, of judged) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sites == nil {
		j.sites = map[site]judged{}
	}
	if j.sites[at] = of; len(of.known) == 0 {
		delete(j.sites, at)
	}
}

// forget drops all of a target.
func (j *judgements) forget(target types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ready, target)
	for at, of := range j.sites {
		if of.target == target {
			delete(j.sites, at)
		}
	}
}

// evaluator judges the objects of one pass. Nil judges none.
type evaluator struct {
	ready *objects.Ready
	limit uint64
	// texts are the rules by kind.
	texts map[schema.GroupKind]string
	// known are the judgements of earlier passes, which nothing changes any more. save replaces them.
	known map[types.UID]judgement
	save  func(known map[types.UID]judgement)

	// evaluating lets one object at a time be judged, so that a pass uses one core and knows what it has spent.
	evaluating sync.Mutex
	mu         sync.Mutex
	spent      uint64
	made       map[types.UID]judgement
}

// evaluator is nil if there are no rules.
func (p *pass) evaluator(ctx context.Context) *evaluator {
	all, target, at := &p.worker.judgements, client.ObjectKeyFromObject(p.Target), site{p.Name, p.rules.owner}
	ready := all.compile(ctx, target, p.spec.Ready)
	if ready == nil {
		all.set(at, judged{})
		return nil
	}
	out := &evaluator{
		ready: ready, limit: p.worker.maxCost, texts: map[schema.GroupKind]string{}, known: all.at(at), made: map[types.UID]judgement{},
		save: func(known map[types.UID]judgement) { all.set(at, judged{target, known}) },
	}
	for _, r := range p.spec.Ready {
		out.texts[schema.GroupKind{Group: r.Group, Kind: r.Kind}] += r.Expression + "\x00"
	}
	return out
}

// judges reports whether there is a rule for a kind.
func (v *evaluator) judges(gk schema.GroupKind) bool { return v != nil && v.ready.Judges(gk) }

// recall returns what the rules of its kind said of this version of an object.
func (v *evaluator) recall(live *metav1.PartialObjectMetadata, gk schema.GroupKind) (fleet.Health, bool) {
	known, found := v.known[live.UID]
	return known.health, found && known.version == live.ResourceVersion && known.rules == v.texts[gk]
}

// exhausted reports whether the pass has spent what it may.
func (v *evaluator) exhausted() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.spent >= v.limit
}

// evaluate judges an object, unless the pass has spent what it may. An object that was begun is judged to its end: the next pass would
// get no further with it.
func (v *evaluator) evaluate(ctx context.Context, o *unstructured.Unstructured) (h fleet.Health, judged bool) {
	v.evaluating.Lock()
	defer v.evaluating.Unlock()
	if v.exhausted() {
		return fleet.Health{}, false
	}
	good, cost, err := v.ready.Evaluate(ctx, o)
	h = fleet.Health{Status: string(kstatus.CurrentStatus)}
	switch {
	case err != nil:
		h = fleet.Health{Status: string(kstatus.InProgressStatus), Reason: notJudged, Message: err.Error()}
	case !good:
		h = fleet.Health{Status: string(kstatus.InProgressStatus), Reason: notReady}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.spent += cost
	if ctx.Err() == nil {
		v.made[o.GetUID()] = judgement{o.GetResourceVersion(), v.texts[o.GroupVersionKind().GroupKind()], h}
	}
	return h, true
}

// keep keeps the judgements of objects that are listed, and no others.
func (v *evaluator) keep(listed []entry) {
	if v == nil {
		return
	}
	out := make(map[types.UID]judgement, len(listed))
	for _, e := range listed {
		if made, found := v.made[e.UID]; found {
			out[e.UID] = made
		} else if known, found := v.known[e.UID]; found {
			out[e.UID] = known
		}
	}
	v.save(out)
}
