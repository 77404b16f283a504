// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lru"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/retry"
)

// Whose turn it is depends on the step of Releases, and how their objects are named on their InstallationTargets.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases;installationtargets,verbs=get;list;watch

// mostFacts bounds the facts and the refusals in memory, in workloads.
const mostFacts = 20000

// Worker changes workloads in place. It is safe for concurrent use.
type Worker struct {
	client client.Reader
	fleet  *fleet.Fleet
	clock  clock.PassiveClock
	facts  *lru.Cache[string, facts] // by the digest of an object, which never changes
	// refused are writes that the API server has refused, by cluster, workload and digest.
	refused *lru.Cache[string, refusal]
	// anchors are those of Releases.
	anchors *installation.Anchors
}

// refusedFor is how long a write is not tried again that the API server has refused, unless the object changes.
const refusedFor = 5 * time.Minute

// refusal is why a write was refused, and of which object.
type refusal struct {
	uid        types.UID
	generation int64
	at         time.Time
	err        error
}

// NewWorker makes a Worker. anchors may be shared.
func NewWorker(reader client.Reader, clusters *fleet.Fleet, anchors *installation.Anchors, c clock.PassiveClock) *Worker {
	return &Worker{
		client: reader, fleet: clusters, clock: c, facts: lru.New[string, facts](mostFacts), refused: lru.New[string, refusal](mostFacts),
		anchors: anchors,
	}
}

// Stake is what one Release has of the workloads in place in a cluster.
type Stake struct {
	// Deployments are the names of those side by side that the anchor of the Release lists. Installed is true if there is an anchor.
	Deployments []string
	Installed   bool
	// Shares are those of the workloads that it has.
	Shares []Share
	// Err is why they could not be read or written.
	Err error
}

// Share is what one Release has of one workload in place.
type Share struct {
	// Kind and Name are those of the workload.
	Kind, Name string
	// Full is its number of Pods at full capacity; 0 for a DaemonSet.
	Full int32
	// Have is how many available Pods the Release has of it.
	Have int32
	// Reason and Message say what the Release lacks; Reason is empty if nothing.
	Reason, Message string
}

// release is a Release with a CapacityTarget for the cluster.
type release struct {
	name       string
	generation int
	// last is true if its last step is requested.
	last   bool
	want   shipper.ClusterCapacityTarget
	target *shipper.InstallationTarget
	// installed is what its anchor lists; nil if there is none.
	installed *installation.Installed
	// rendered is what it has stored in the cluster, read at most once in a pass over all its workloads.
	rendered installation.Rendered
}

// problem is an error with the reason for the condition and what to do about it.
type problem struct {
	reason  string
	action  retry.Action
	message string
}

// Error is the message.
func (p *problem) Error() string { return p.message }

// Classify implements retry.Classified.
func (p *problem) Classify() (reason string, action retry.Action) { return p.reason, p.action }

// Work changes the workloads in place of an Application in a cluster, and returns what each Release has of them, by its name. Releases
// whose objects are named by Release are not among them. targets are those that are in effect. The error is one of the management cluster.
func (w *Worker) Work(
	ctx context.Context, cluster string, app types.NamespacedName, targets []*shipper.CapacityTarget,
) (map[string]*Stake, error) {
	releases, err := w.releases(ctx, cluster, targets)
	if len(releases) == 0 || err != nil {
		return nil, err
	}
	stakes := make(map[string]*Stake, len(releases))
	for _, r := range releases {
		stakes[r.name] = &Stake{}
	}
	if err := w.work(ctx, cluster, app, releases, stakes); err != nil {
		for _, s := range stakes {
			s.Err = err
		}
	}
	return stakes, nil
}

// work is Work for Releases with the newest first. The error concerns all of them.
func (w *Worker) work(
	ctx context.Context, cluster string, app types.NamespacedName, releases []*release, stakes map[string]*Stake,
) error {
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		return err
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, app.Namespace, app.Name); err != nil {
		return err
	}
	all, err := w.anchors.Of(ctx, member, app)
	if err != nil {
		return err
	}
	unknown := ""
	for _, r := range releases {
		i := slices.IndexFunc(all, func(i installation.Installed) bool { return i.Release == r.name })
		if i >= 0 {
			r.installed = &all[i]
			stakes[r.name].Deployments, stakes[r.name].Installed = all[i].Deployments, true
		} else if r.want.Percent > 0 {
			unknown = r.name
		}
	}
	list := workloads(releases)
	if unknown != "" && len(list) > 0 { // which of them it has is not known
		return &problem{shipper.InProgress, retry.Recheck, fmt.Sprintf("workloads in place wait until Release %q is installed", unknown)}
	}
	for _, one := range list {
		p := pass{Worker: w, member: member, all: all, workload: one}
		shares, err := p.run(ctx)
		for i, s := range one.sides {
			stake := stakes[s.name]
			stake.Shares = append(stake.Shares, shares[i])
		}
		if err != nil {
			stakes[p.concerned()].Err = err
		}
	}
	return nil
}

// releases are those whose objects are named by Application, the newest first.
func (w *Worker) releases(ctx context.Context, cluster string, targets []*shipper.CapacityTarget) ([]*release, error) {
	var out []*release
	for _, ct := range targets {
		i := slices.IndexFunc(ct.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool { return c.Name == cluster })
		if i < 0 {
			continue
		}
		key := client.ObjectKeyFromObject(ct)
		it, rel := &shipper.InstallationTarget{}, &shipper.Release{}
		err := w.client.Get(ctx, key, it, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err): // it is made before the CapacityTarget: the Release goes
			continue
		case err != nil:
			return nil, fmt.Errorf("reading InstallationTarget %s: %w", key, err)
		case it.Spec.Chart == nil || it.Spec.Chart.Naming != shipper.NamingByApplication:
			continue
		}
		if err := w.client.Get(ctx, key, rel, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading Release %s: %w", key, err)
		}
		generation, err := stamp.Generation(rel)
		if err != nil {
			return nil, err
		}
		out = append(out, &release{
			name: rel.Name, generation: generation, last: atLast(rel, cluster), want: ct.Spec.Clusters[i], target: it,
		})
	}
	slices.SortFunc(out, func(a, b *release) int { return b.generation - a.generation })
	return out, nil
}

// atLast reports whether the last step of a Release is requested in a cluster. Where it has failed within maxFailures, one before may be.
func atLast(rel *shipper.Release, cluster string) bool {
	s := rel.Spec.Environment.Strategy
	step, reached := waves.StepIn(rel, cluster)
	return s == nil || reached && int(step) >= len(s.Steps)-1 && !waves.FailedIn(rel).Lacks(cluster)
}
