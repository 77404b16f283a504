// SPDX-License-Identifier: Apache-2.0

// Package run takes SequenceRuns through their tasks. What a run does next is decided by apis/rules/shipyard; each decision is written
// before it is acted on, so that a crash repeats an act and loses none. Tasks write as the ServiceAccount that the namespace binds to
// Shipper.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/run/native"
)

// Users create runs and Shipyards; this one writes the status of runs and of their Approvals, keeps what they do as revisions of the
// Shipyard, creates those that follow and deletes those that history does not keep. It asks whether the ServiceAccount of a run may write.
// A run's tasks write as that ServiceAccount, which its namespace binds to Shipper.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=shipyards,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=sequenceruns,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=shipper.booking.com,resources=sequenceruns/status;approvals/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=shipper.booking.com,resources=approvals;checks;rolloutblocks,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications;releases;installationtargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=checktargets,verbs=get;list;watch;create

// blockedAgain is how long after the refusal of a block the task is tried again if no event came.
const blockedAgain = 15 * time.Second

// Options for SetupWithManager.
type Options struct {
	// Config is how the manager connects: runners connect the same way, as other users.
	Config *rest.Config
	// Histories finds the Releases of an Application.
	Histories *history.Reader
	// Charts resolves versions of charts.
	Charts Resolver
	// SharedChecksNamespace is the one with the Checks that all namespaces share.
	SharedChecksNamespace string
	// Clock is the time.
	Clock clock.PassiveClock
	// Workers is how many runs are worked on at the same time; 4 when it is 0.
	Workers int
	// Queue makes the queue of requests. Nil: first come, first served.
	Queue queue.New[ctrl.Request]
}

// Reconciler takes runs through their tasks.
type Reconciler struct {
	client    client.Client
	live      client.Reader
	direct    client.Client // its writes make no informer
	tasks     *native.Tasks
	charts    Resolver
	revisions *revisions
	// releases are those that carry an Application's label. They are a cache's own.
	releases func(ctx context.Context, app client.ObjectKey) ([]*shipper.Release, error)
	clock    clock.PassiveClock
	recorder events.EventRecorder
	retrier  *retry.Retrier[ctrl.Request]
	// deciding locks each Shipyard by its key: two runs of a stage must not begin without knowing of each other.
	deciding *keyedsemaphore.Semaphore
	// begun has the start of each unfinished run, by its key, that this process has written.
	begun sync.Map
}

// start is when a run began. UID tells runs apart that had the same name.
type start struct {
	uid  types.UID
	time *metav1.Time
}

// Reconcile takes a run as far as it goes now.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &shipper.SequenceRun{}
	err := r.client.Get(ctx, req.NamespacedName, run)
	if apierrors.IsNotFound(err) {
		r.retrier.Forget(req)
		r.begun.Delete(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading SequenceRun %s: %w", req, err)
	}
	var again time.Duration
	if run.DeletionTimestamp.IsZero() {
		if err = r.recordApprovals(ctx, run); err == nil {
			again, err = r.advance(ctx, run)
		}
	}
	if errors.Is(err, errGone) {
		return ctrl.Result{}, nil // the event of its deletion comes
	}
	result, err := r.retrier.Result(req, err)
	result.RequeueAfter = report.Sooner(result.RequeueAfter, again)
	return result, err
}

// advance decides and acts until nothing changes any more. It returns when the time alone may change something; 0 for never.
func (r *Reconciler) advance(ctx context.Context, run *shipper.SequenceRun) (time.Duration, error) {
	if shipyard.IsFinished(run) {
		return r.finish(ctx, run, false)
	}
	j, err := r.resolve(ctx, run)
	if err != nil || j.waits {
		return 0, err
	}
	for {
		d, err := r.decideNext(ctx, run, j, nil)
		if err != nil {
			return 0, err
		}
		again := report.Sooner(d.Recheck, j.again)
		if d.Do != nil && isStored(run, d.Do) {
			out, err := r.act(ctx, run, d.Do)
			if err != nil {
				return 0, err
			}
			doing := d.Do.EventID
			if d, err = r.decideNext(ctx, run, j, &out); err != nil {
				return 0, err
			}
			if again = d.Recheck; out.Blocked != "" {
				again = report.Sooner(again, blockedAgain)
			}
			if d.Do != nil && d.Do.EventID == doing {
				return again, nil
			}
			continue
		}
		if shipyard.IsFinished(run) {
			return r.finish(ctx, run, true)
		}
		if d.Do == nil {
			return again, nil
		}
	}
}

// decideNext decides and writes the decision, unless a task is to be done first that is stored already. Runs of a Shipyard are decided
// about one after another, so that each knows which others have begun.
func (r *Reconciler) decideNext(
	ctx context.Context, run *shipper.SequenceRun, j judgement, out *shipyard.Outcome,
) (shipyard.Decision, error) {
	key := run.Namespace + "/" + run.Spec.Shipyard
	if err := r.deciding.Enter(ctx, key); err != nil {
		return shipyard.Decision{}, err
	}
	defer r.deciding.Leave(key)
	d, err := r.decide(ctx, run, j, out)
	if err != nil || out == nil && d.Do != nil && isStored(run, d.Do) {
		return d, err
	}
	if run.Spec.RetryOf != nil && run.Status.StartTime == nil && d.Status.StartTime != nil {
		begins := *run // as it begins: it may have been resolved in this decision
		begins.Status = d.Status
		if err := r.useUp(ctx, &begins); err != nil {
			return d, err
		}
	}
	return d, r.write(ctx, run, d)
}

// isStored reports whether the status says that a task is under way: only then it is acted on.
func isStored(run *shipper.SequenceRun, task *shipper.TaskStatus) bool {
	n := len(run.Status.Tasks)
	return n > 0 && run.Status.Tasks[n-1].EventID == task.EventID && run.Status.Tasks[n-1].State == shipper.TaskTriggered
}

// act advances a task. A run that follows from another one is given that one.
func (r *Reconciler) act(ctx context.Context, run *shipper.SequenceRun, task *shipper.TaskStatus) (shipyard.Outcome, error) {
	var before *shipper.SequenceRun
	if by := run.Status.Resolved.TriggeredBy; by != nil {
		var err error
		if before, err = r.named(ctx, run.Namespace, by.Run); err != nil {
			return shipyard.Outcome{}, err
		}
	}
	return r.tasks.Do(ctx, run, before, task)
}

// decide computes the next status. j is the judgement of a new run.
func (r *Reconciler) decide(ctx context.Context, run *shipper.SequenceRun, j judgement, out *shipyard.Outcome) (shipyard.Decision, error) {
	if run.Status.Resolved == nil {
		judged := *run
		judged.Status.Resolved, judged.Status.Order = j.resolved, cmp.Or(run.Status.Order, j.order)
		return r.plan(ctx, &judged, shipyard.Observed{Refused: j.refused, Unresolved: j.unresolved})
	}
	if run.Status.StartTime != nil {
		return r.plan(ctx, run, shipyard.Observed{Outcome: out})
	}
	if d, err := r.planned(ctx, run, shipyard.Observed{}); err != nil || shipyard.StillWaits(&d.Status) {
		return d, err
	}
	if err := r.readLive(ctx, run); err != nil {
		return shipyard.Decision{}, err
	}
	return r.plan(ctx, run, shipyard.Observed{})
}

// plan completes what was observed of a run that is whole, and decides. A retry that has not begun is judged again: meanwhile another run
// may have the name of the one that it repeats, or have done what was approved once.
func (r *Reconciler) plan(ctx context.Context, run *shipper.SequenceRun, o shipyard.Observed) (shipyard.Decision, error) {
	var err error
	if run.Status.Resolved != nil {
		if o.Snapshot, err = r.revisions.of(ctx, run); err != nil {
			return shipyard.Decision{}, err
		}
	}
	if run.Status.Resolved != nil && run.Spec.RetryOf != nil && shipyard.StillWaits(&run.Status) {
		if o.RetryOf, o.Refused, err = r.repeated(ctx, run); err != nil {
			return shipyard.Decision{}, err
		}
	}
	return r.planned(ctx, run, o)
}

// planned decides by what was observed, and by the runs and the Approvals that the cache has.
func (r *Reconciler) planned(ctx context.Context, run *shipper.SequenceRun, o shipyard.Observed) (shipyard.Decision, error) {
	o.Run, o.Now = run, r.clock.Now()
	var err error
	if o.Others, err = r.others(ctx, run); err != nil {
		return shipyard.Decision{}, err
	}
	if n := len(run.Status.Tasks); n > 0 && run.Status.Tasks[n-1].State == shipper.TaskWaiting {
		o.Approvals, err = r.approvals(ctx, run)
	}
	return shipyard.Plan(o), err
}

// readLive reads a run from the API server: the cache has those that are not under way as Strip leaves them.
func (r *Reconciler) readLive(ctx context.Context, run *shipper.SequenceRun) error {
	now, err := r.namedNow(ctx, run.Namespace, run.Name)
	if err != nil {
		return err
	}
	if now == nil || now.UID != run.UID {
		return errGone
	}
	*run = *now
	return nil
}

// errGone ends a pass: the run was deleted, and nothing is done for it any more.
var errGone = errors.New("the run is gone")

// write writes a decision, unless the run has changed since it was read.
func (r *Reconciler) write(ctx context.Context, run *shipper.SequenceRun, d shipyard.Decision) error {
	was := run.DeepCopy()
	run.Status = d.Status
	changed, err := report.PatchStatus(ctx, r.client, run, was)
	if err != nil {
		return fmt.Errorf("writing the status of SequenceRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	if !changed && !equality.Semantic.DeepEqual(was.Status, run.Status) {
		return errGone
	}
	if shipyard.IsFinished(run) {
		r.begun.Delete(client.ObjectKeyFromObject(run))
	} else if run.Status.StartTime != nil {
		r.begun.Store(client.ObjectKeyFromObject(run), start{run.UID, run.Status.StartTime})
	}
	if changed {
		report.Emit(r.recorder, run, report.AsOne(changes(was, run)))
	}
	return nil
}

// others are the other unfinished runs that a decision about a run depends on. Lists do not wait for what this process has written: that a
// run has begun is added.
func (r *Reconciler) others(ctx context.Context, run *shipper.SequenceRun) ([]*shipper.SequenceRun, error) {
	key := inQueue(run)
	if isBounded(run) {
		key = inStage(run)
	}
	out, err := r.list(ctx, run.Namespace, client.MatchingFields{unfinishedOf: key})
	for i, other := range out {
		stored, _ := r.begun.Load(client.ObjectKeyFromObject(other))
		if begun, is := stored.(start); is && begun.uid == other.UID && other.Status.StartTime == nil {
			known := *other
			known.Status.StartTime = begun.time
			out[i] = &known
		}
	}
	return out, err
}

func (r *Reconciler) list(ctx context.Context, namespace string, matching client.ListOption) ([]*shipper.SequenceRun, error) {
	var all shipper.SequenceRunList
	if err := r.client.List(ctx, &all, client.InNamespace(namespace), matching, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the runs of a Shipyard: %w", err)
	}
	out := make([]*shipper.SequenceRun, 0, len(all.Items))
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	return out, nil
}

// Strip completes a transform of the cache, which may have failed. It keeps of runs that are not under way what others are decided by.
func Strip(o any, err error) (any, error) {
	if run, is := o.(*shipper.SequenceRun); is && !shipyard.IsUnderWay(run) {
		shipyard.Strip(run)
	}
	return o, err
}

// named is another run of the namespace as Strip leaves it; nil if there is none.
func (r *Reconciler) named(ctx context.Context, namespace, name string) (*shipper.SequenceRun, error) {
	return read(ctx, r.client, namespace, name)
}

// namedNow is another run of the namespace, whole; nil if there is none.
func (r *Reconciler) namedNow(ctx context.Context, namespace, name string) (*shipper.SequenceRun, error) {
	return read(ctx, r.live, namespace, name)
}

func read(ctx context.Context, from client.Reader, namespace, name string) (*shipper.SequenceRun, error) {
	out := &shipper.SequenceRun{}
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading SequenceRun %s/%s: %w", namespace, name, err)
	}
	return out, nil
}
