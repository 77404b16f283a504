// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"math"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/index"
	"shipper.dev/shipper/reconciler/predicates"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/run/native"
)

// The indexes of runs, each with the runs that a decision or an event bears on and few others: all of a Shipyard; all of a service of it;
// the unfinished ones of a stage of it, and of a service there; those that wait in a stage whose number of runs is bounded; those whose
// follow-ups wait, of a service; by the Application that one under way is about; and of Approvals, by their run.
const (
	runsOf        = "shipyard"
	serviceOf     = "service"
	unfinishedOf  = "unfinished"
	boundedIn     = "bounded"
	awaiting      = "awaiting"
	byApplication = "run.application"
	byBlock       = "run.blocked"
	approvalsOf   = "run"
	yes           = "yes"
)

const defaultWorkers = 4

// Queue makes the queue of runs. A namespace gets half of the workers: a decision about one of many large runs takes long.
func Queue(workers int) queue.New[ctrl.Request] {
	return queue.Of(queue.Options[ctrl.Request]{
		Namespace: func(r ctrl.Request) string { return r.Namespace }, Workers: workers, PerNamespace: max(1, workers/2),
	})
}

// SetupWithManager makes the reconciler run with mgr. ctx is needed for the time of the call only.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if err := indexes(ctx, mgr); err != nil {
		return fmt.Errorf("setting up runs: %w", err)
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("setting up runs: %w", err)
	}
	r := &Reconciler{
		client: mgr.GetClient(), direct: direct, live: mgr.GetAPIReader(), clock: o.Clock,
		charts: o.Charts, revisions: newRevisions(direct), releases: o.Histories.Releases,
		recorder: mgr.GetEventRecorder(fleet.UserAgent), retrier: retry.NewRetrier(retry.Limiter[ctrl.Request]()),
		deciding: keyedsemaphore.New(math.MaxInt, 1),
		tasks: native.New(native.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Config: o.Config, Histories: o.Histories,
			SharedChecks: o.SharedChecksNamespace, Clock: o.Clock,
		}),
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("run").
		For(&shipper.SequenceRun{}).
		Watches(&shipper.SequenceRun{}, handler.EnqueueRequestsFromMapFunc(r.beside), otherRunsConcerned()).
		Watches(&shipper.Approval{}, handler.EnqueueRequestsFromMapFunc(ofApproval)).
		Watches(&shipper.Application{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.about(ctx, o.GetNamespace(), o.GetName())
		})).
		Watches(&shipper.Release{}, handler.EnqueueRequestsFromMapFunc(r.ofLabel)).
		Watches(&shipper.InstallationTarget{}, handler.EnqueueRequestsFromMapFunc(r.ofLabel)).
		Watches(&shipper.CheckTarget{}, handler.EnqueueRequestsFromMapFunc(r.ofLabel)).
		Watches(&shipper.RolloutBlock{}, handler.EnqueueRequestsFromMapFunc(r.blocked), predicates.BlockActiveChanged()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: retry.Limiter[ctrl.Request](), NewQueue: o.Queue}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up runs: %w", err)
	}
	return nil
}

func indexes(ctx context.Context, mgr ctrl.Manager) error {
	for field, keys := range shipyardIndexes() {
		if err := index.Within(ctx, mgr.GetCache(), &shipper.SequenceRun{}, field, keys); err != nil {
			return err
		}
	}
	app := func(run *shipper.SequenceRun) []string {
		if !shipyard.IsUnderWay(run) || !shipyard.IsAboutApplication(shipyard.OwnSequence(run)) {
			return nil // no event of an Application lets it go on
		}
		return []string{shipyard.ApplicationOfRun(run).String()}
	}
	held := func(run *shipper.SequenceRun) []string {
		if !shipyard.IsFinished(run) && shipper.ConditionTrue(run.Status.Conditions, shipper.RunBlocked) {
			return []string{yes}
		}
		return nil
	}
	for field, keys := range map[string]client.IndexerFunc{byApplication: indexed(app), byBlock: indexed(held)} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &shipper.SequenceRun{}, field, keys); err != nil {
			return fmt.Errorf("indexing runs by %s: %w", field, err)
		}
	}
	return index.Within(ctx, mgr.GetCache(), &shipper.Approval{}, approvalsOf, runOfApproval)
}

// shipyardIndexes are the indexes of runs by their Shipyard, which are read in one namespace at a time.
func shipyardIndexes() map[string]client.IndexerFunc {
	only := func(is func(*shipper.SequenceRun) bool, keys ...func(*shipper.SequenceRun) string) client.IndexerFunc {
		return indexed(func(run *shipper.SequenceRun) []string {
			if !is(run) {
				return nil
			}
			out := make([]string, len(keys))
			for i, key := range keys {
				out[i] = key(run)
			}
			return out
		})
	}
	every := func(*shipper.SequenceRun) bool { return true }
	isUnfinished := func(run *shipper.SequenceRun) bool { return !shipyard.IsFinished(run) }
	waitsBounded := func(run *shipper.SequenceRun) bool { return shipyard.StillWaits(&run.Status) && isBounded(run) }
	awaits := func(run *shipper.SequenceRun) bool { return shipyard.IsFinished(run) && shipyard.HasUncreated(run) }
	return map[string]client.IndexerFunc{
		runsOf:       only(every, func(run *shipper.SequenceRun) string { return run.Spec.Shipyard }),
		serviceOf:    only(every, ofService),
		unfinishedOf: only(isUnfinished, inStage, inQueue),
		boundedIn:    only(waitsBounded, inStage),
		awaiting:     only(awaits, ofService),
	}
}

// inStage, inQueue and ofService are keys of indexes. Names have no slash.
func inStage(run *shipper.SequenceRun) string   { return run.Spec.Shipyard + "/" + run.Spec.Stage }
func inQueue(run *shipper.SequenceRun) string   { return inStage(run) + "/" + run.Spec.Service }
func ofService(run *shipper.SequenceRun) string { return run.Spec.Shipyard + "/" + run.Spec.Service }

// isBounded reports whether the stage of a run bounds how many are under way.
func isBounded(run *shipper.SequenceRun) bool {
	return shipyard.StageOf(run).MaxConcurrency != nil
}

// indexed indexes runs.
func indexed(keys func(*shipper.SequenceRun) []string) client.IndexerFunc {
	return func(o client.Object) []string {
		if run, ok := o.(*shipper.SequenceRun); ok {
			return keys(run)
		}
		return nil
	}
}

// runOfApproval indexes Approvals by their run.
func runOfApproval(o client.Object) []string {
	if a, ok := o.(*shipper.Approval); ok && a.Spec.Run != "" {
		return []string{a.Spec.Run}
	}
	return nil
}

// ofApproval makes a request for the run of an Approval.
func ofApproval(_ context.Context, o client.Object) []reconcile.Request {
	if a, ok := o.(*shipper.Approval); ok && a.Spec.Run != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: a.Namespace, Name: a.Spec.Run}}}
	}
	return nil
}

// ofLabel makes requests for the runs under way about the Application that an object belongs to.
func (r *Reconciler) ofLabel(ctx context.Context, o client.Object) []reconcile.Request {
	return r.about(ctx, o.GetNamespace(), o.GetLabels()[shipper.AppLabel])
}

// about makes requests for the runs under way about an Application, which may be of other namespaces.
func (r *Reconciler) about(ctx context.Context, namespace, app string) []reconcile.Request {
	return r.requests(ctx, client.MatchingFields{byApplication: namespace + "/" + app})
}

// blocked makes requests for the runs that a block has refused.
func (r *Reconciler) blocked(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, client.MatchingFields{byBlock: yes})
}

// requests are for the runs that are found.
func (r *Reconciler) requests(ctx context.Context, matching ...client.ListOption) []reconcile.Request {
	var all shipper.SequenceRunList
	if err := r.client.List(ctx, &all, append(matching, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the runs that an event bears on")
	}
	out := make([]reconcile.Request, len(all.Items))
	for i := range all.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&all.Items[i])
	}
	return out
}

// otherRunsConcerned lets through that a run comes or is gone, and changes that bear on other runs.
func otherRunsConcerned() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*shipper.SequenceRun)
		is, ok2 := e.ObjectNew.(*shipper.SequenceRun)
		return ok && ok2 && bearsOnOthers(was, is)
	}})
}

// bearsOnOthers reports whether anything changed that a decision about another run reads: hold, its number, whether a run was resolved,
// began or finished, its result, and what it takes back. Of the spec, only hold and abort can change. The UID does if events of a deletion
// and a creation were missed.
func bearsOnOthers(was, is *shipper.SequenceRun) bool {
	return was.UID != is.UID || was.Generation != is.Generation ||
		was.Status.Order != is.Status.Order || (was.Status.Resolved == nil) != (is.Status.Resolved == nil) ||
		(was.Status.StartTime == nil) != (is.Status.StartTime == nil) ||
		shipyard.IsFinished(was) != shipyard.IsFinished(is) ||
		!slices.Equal(shipyard.TakenBack(was), shipyard.TakenBack(is)) ||
		was.Status.Result != is.Status.Result || !was.Status.FinishTime.Equal(is.Status.FinishTime)
}

// beside makes requests for the runs that a change of a run bears on: those that wait for their turn in its stage, one under way that it
// may preempt, and finished ones whose follow-ups wait for what it has passed, or no longer has.
func (r *Reconciler) beside(ctx context.Context, o client.Object) []reconcile.Request {
	run, ok := o.(*shipper.SequenceRun)
	if !ok {
		return nil
	}
	found := map[client.ObjectKey]bool{}
	add := func(fields client.MatchingFields, is func(*shipper.SequenceRun) bool) {
		others, err := r.list(ctx, run.Namespace, fields)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find the runs beside another")
		}
		for _, other := range others {
			if other.Name != run.Name && is(other) {
				found[client.ObjectKeyFromObject(other)] = true
			}
		}
	}
	every := func(*shipper.SequenceRun) bool { return true }
	add(client.MatchingFields{unfinishedOf: inQueue(run)}, func(other *shipper.SequenceRun) bool {
		return other.Status.StartTime == nil || run.Status.StartTime == nil
	})
	add(client.MatchingFields{boundedIn: inStage(run)}, every)
	takesBack := len(shipyard.TakenBack(run)) > 0
	if shipyard.IsFinished(run) || takesBack {
		add(client.MatchingFields{awaiting: ofService(run)}, func(other *shipper.SequenceRun) bool {
			return takesBack || shipyard.MayBeSame(shipyard.VersionOf(other), shipyard.VersionOf(run))
		})
	}
	out := make([]reconcile.Request, 0, len(found))
	for key := range found {
		out = append(out, reconcile.Request{NamespacedName: key})
	}
	return out
}
