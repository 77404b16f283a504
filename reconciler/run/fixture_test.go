// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/reconciler/retry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// newReconciler is a reconciler at noon, whose cache and API server have the same objects. funcs replace what the API server does.
func newReconciler(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(appsv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&shipper.SequenceRun{}, &shipper.Approval{}).
		WithIndex(&shipper.Approval{}, approvalsOf, runOfApproval).WithInterceptorFuncs(funcs)
	for field, keys := range shipyardIndexes() {
		builder.WithIndex(&shipper.SequenceRun{}, field, keys)
	}
	c := builder.Build()
	kept := newRevisions(c)
	snapshots.Range(func(digest, of any) bool {
		kept.kept.Add(revisionKey{client.ObjectKey{Namespace: "shop", Name: revision}, digest.(string)}, of)
		return true
	})
	return &Reconciler{
		client: c, live: c, direct: c, charts: charts{}, revisions: kept, releases: labelled(c), clock: testclock.NewFakePassiveClock(noon),
		recorder: events.NewFakeRecorder(100),
		retrier:  retry.NewRetrier(retry.Limiter[ctrl.Request]()), deciding: keyedsemaphore.New(math.MaxInt, 1),
	}
}

// labelled reads the Releases with an Application's label.
func labelled(c client.Reader) func(context.Context, client.ObjectKey) ([]*shipper.Release, error) {
	return func(ctx context.Context, app client.ObjectKey) (out []*shipper.Release, err error) {
		var list shipper.ReleaseList
		err = c.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
		return out, err
	}
}

// charts resolves constraints to 1.2.3. It has no 9.9.9, and of 6.6.6 it does not know the repository.
type charts struct{}

func (charts) Resolve(_ context.Context, _ string, want shipper.Chart) (repository.Resolution, error) {
	switch {
	case want.Version == "9.9.9":
		return repository.Resolution{}, chart.ErrNoMatch
	case strings.HasSuffix(want.Version, "6.6.6"):
		return repository.Resolution{}, chart.ErrUnreachable
	}
	return repository.Resolution{Version: "1.2.3", Digest: "d"}, nil
}

// theShipyard has the stages staging and production; the end of delivery in staging triggers delivery in production.
func theShipyard() *shipper.Shipyard {
	tasks := func(names ...string) []shipper.Task {
		out := make([]shipper.Task, len(names))
		for i, name := range names {
			out[i].Name = name
		}
		return out
	}
	return &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "yard", UID: "yard-uid", Generation: 2},
		Spec: shipper.ShipyardSpec{Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{
				{Name: "delivery", Tasks: tasks("approval", "deployment")}, {Name: "sign", Tasks: tasks("approval")},
			}},
			{Name: "production", Sequences: []shipper.Sequence{{
				Name: "delivery", Tasks: tasks("approval", "deployment"), TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}},
			}}},
		}},
	}
}

// revision is the name of all revisions of the Shipyard.
const revision = "yard-1"

// snapshots are the revisions of the Shipyard, by digest.
var snapshots sync.Map

// snapshotOf is the revision that a run is of.
func snapshotOf(run *shipper.SequenceRun) *shipper.ShipyardSnapshot {
	of, _ := snapshots.Load(run.Status.Resolved.Revision.Digest)
	snapshot, _ := of.(*shipper.ShipyardSnapshot)
	return snapshot
}

// resolves lets a run be of a revision.
func resolves(run *shipper.SequenceRun, of *shipper.ShipyardSnapshot) {
	digest := shipyard.Digest(of)
	snapshots.Store(digest, of)
	is := shipyard.Resolved(of, run.Spec.Stage, run.Spec.Sequence)
	is.Revision = shipper.ShipyardRevision{UID: "yard-uid", Generation: 2, Name: revision, Digest: digest}
	is.Context, is.Version = "context", shipper.RunVersion{Name: "web", Version: "1.2.3", Digest: "d"}
	if was := run.Status.Resolved; was != nil {
		is.Context, is.Version, is.TriggeredBy = was.Context, was.Version, was.TriggeredBy
		is.EarlierRequesters, is.RetryOfUID, is.Data = was.EarlierRequesters, was.RetryOfUID, was.Data
	}
	run.Status.Resolved = is
}

// with lets a run be of another revision.
func with(edit func(*shipper.ShipyardSnapshot)) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		of := snapshotOf(run).DeepCopy()
		edit(of)
		resolves(run, of)
	}
}

// in lets a run be of a stage.
func in(stage string) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		run.Spec.Stage = stage
		resolves(run, snapshotOf(run))
	}
}

// of lets a run be of another delivery.
func of(context string) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) { run.Status.Resolved.Context = context }
}

// runOf is a run that ann requested, as it is resolved.
func runOf(name string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name + "-uid"), Generation: 1, CreationTimestamp: after(-3600),
		},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "yard", Stage: "staging", Sequence: "delivery", Service: "web", Data: shipper.FreeForm{"weight": int64(5)},
			RequestedBy: shipper.ApprovalUser{Username: "ann"},
		},
	}
	resolves(run, shipyard.Snapshot(theShipyard()))
	for _, edit := range edits {
		edit(run)
	}
	return run
}

// started lets a run begin a minute before noon.
func started(run *shipper.SequenceRun) {
	at := after(-60)
	run.Status.StartTime = &at
}

// ended lets a run end at noon with a result, and list what it triggers.
func ended(result shipper.Result) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) {
		at := after(0)
		started(run)
		run.Status.Result, run.Status.Completion, run.Status.FinishTime = result, shipper.CompletionSucceeded, &at
		run.Status.Data = shipper.FreeForm{"weight": int64(6)}
		run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True", LastTransitionTime: at}}
		run.Status.Triggered = shipyard.FollowUps(run, snapshotOf(run))
	}
}

// followUp is what the reconciler creates at the end of the run first, as it is read again and resolved.
func followUp(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	before := runOf("first", ended(shipper.ResultPass))
	run := shipyard.FollowUp(before, &before.Status.Triggered[0])
	run.UID, run.CreationTimestamp = "next-uid", after(0)
	run.Spec.Data = shipper.FreeForm{"weight": float64(6)} // as another decoder reads it
	run.Status.Resolved, _ = shipyard.Inherit(run, before, snapshotOf(before))
	for _, edit := range edits {
		edit(run)
	}
	return run
}

// message is that of an error; empty for nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
