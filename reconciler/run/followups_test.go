// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var runs = schema.GroupResource{Group: shipper.GroupVersion.Group, Resource: "sequenceruns"}

// requires lets stage production require that the version has passed in staging, for a time.
func requires(soak shipper.Duration) func(*shipper.SequenceRun) {
	return with(func(of *shipper.ShipyardSnapshot) {
		of.Stages[1].Requires = []shipper.StageRequirement{{Stage: "staging", Soak: soak}}
	})
}

// creation is what came of the follow-ups of a run.
type creation struct {
	// Sent are the names of the runs that were sent to the API server.
	Sent  []string
	Again time.Duration
	Err   string
	// Triggered is what the API server has stored afterwards.
	Triggered []shipper.TriggeredRun
}

// followUpCase is a finished run, and what the API server has and says.
type followUpCase struct {
	run     *shipper.SequenceRun
	objects []client.Object
	// refusal is the answer to each creation, and unread that to each live read; nil for none.
	refusal, unread error
	want            func(*creation)
}

// creates lets the reconciler create the follow-ups of a stored run, and returns what came of it.
func (tc followUpCase) creates(t *testing.T, times int) creation {
	t.Helper()
	var got creation
	r := newReconciler(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			got.Sent = append(got.Sent, obj.GetName())
			if tc.refusal != nil {
				return tc.refusal
			}
			return c.Create(ctx, obj, opts...)
		},
	}, append(tc.objects, tc.run)...)
	if tc.unread != nil {
		r.live = interceptor.NewClient(newReconciler(t, interceptor.Funcs{}).client.(client.WithWatch), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return tc.unread
			},
		})
	}
	for range times {
		run, err := r.named(t.Context(), tc.run.Namespace, tc.run.Name)
		if err != nil {
			t.Fatal(err)
		}
		got.Again, err = r.createFollowUps(t.Context(), run, []*shipper.SequenceRun{run})
		got.Err = message(err)
	}
	stored, err := r.named(t.Context(), tc.run.Namespace, tc.run.Name)
	if err != nil {
		t.Fatal(err)
	}
	got.Triggered = stored.Status.Triggered
	return got
}

// check compares what came of it with what is wanted: that the only follow-up was sent and not created, but for want.
func (tc followUpCase) check(t *testing.T) {
	t.Helper()
	triggered := shipyard.FollowUps(tc.run, snapshotOf(tc.run))
	want := creation{Sent: []string{triggered[0].Name}, Triggered: triggered}
	tc.want(&want)
	if diff := cmp.Diff(want, tc.creates(t, 1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func created(c *creation) { c.Triggered[0].CreateTime = ptr.To(after(0)) }

func refused(why string) func(*creation) {
	return func(c *creation) { c.Triggered[0].Refused, c.Triggered[0].Message = true, why }
}

func TestAFollowUpIsCreatedOrRefusedOnce(t *testing.T) {
	for sentence, tc := range map[string]followUpCase{
		"one that was created": {want: created},
		"one that was refused": {refusal: apierrors.NewBadRequest("no JSON"), want: refused("no JSON")},
	} {
		tc.run = runOf("first", ended(shipper.ResultPass))
		want := creation{Triggered: shipyard.FollowUps(tc.run, snapshotOf(tc.run))}
		want.Sent = []string{want.Triggered[0].Name}
		tc.want(&want)
		if diff := cmp.Diff(want, tc.creates(t, 2)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

// The cache has finished runs without data, and with the names of their tasks alone.
func TestAFollowUpIsMadeOfTheWholeRun(t *testing.T) {
	first := runOf("first", ended(shipper.ResultPass))
	r := newReconciler(t, interceptor.Funcs{}, theShipyard(), first)
	cached := first.DeepCopy()
	shipyard.Strip(cached)
	if _, err := r.finish(t.Context(), cached, false); err != nil {
		t.Fatal(err)
	}
	want := shipyard.FollowUp(first, &first.Status.Triggered[0])
	got, err := r.named(t.Context(), "shop", want.Name)
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	if diff := cmp.Diff(want.Spec.Data, got.Spec.Data); diff != "" || !shipyard.Same(want.Spec, got.Spec) {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestManyFollowUpsAreCreatedInSeveralPasses(t *testing.T) {
	first := runOf("first", ended(shipper.ResultPass))
	for i := range maxCreatesPerPass {
		first.Status.Triggered = append(first.Status.Triggered, first.Status.Triggered[0])
		first.Status.Triggered[i].Name = fmt.Sprintf("web-%d.x", i)
	}
	tc := followUpCase{run: first}
	once, twice := tc.creates(t, 1), tc.creates(t, 2)
	if len(once.Sent) != maxCreatesPerPass || once.Again == 0 || len(twice.Sent) != maxCreatesPerPass+1 || twice.Again != 0 {
		t.Errorf("once: %d, again %s; twice: %d, again %s", len(once.Sent), once.Again, len(twice.Sent), twice.Again)
	}
}

func TestAFollowUpWhoseNameIsTakenIsTheRunOfTheSameDelivery(t *testing.T) {
	first := runOf("first", ended(shipper.ResultPass))
	const other = "another run has its name: delete it, or start this one by hand"
	there := func(edits ...func(*shipper.SequenceRun)) []client.Object { return []client.Object{followUp(edits...)} }
	by := func(name string) func(*shipper.SequenceRun) {
		return func(run *shipper.SequenceRun) { run.Labels[shipper.TriggeredByLabel] = name }
	}
	for sentence, tc := range map[string]followUpCase{
		"this run has created it, and its status was not written": {run: first, objects: there(), want: created},
		"this run has created it, and it has ended": {
			run: first, objects: there(ended(shipper.ResultFail)), want: created,
		},
		"another run of the delivery has created it, and it is under way": {
			run: first, objects: there(by("second"), started), want: created,
		},
		"another run of the delivery has created it, and it has ended": {
			run: first, objects: there(by("second"), ended(shipper.ResultPass)), want: refused("it has run already in this delivery: retry it"),
		},
		"a user has created it": {
			run: first, objects: there(func(run *shipper.SequenceRun) { run.Labels = nil }), want: refused(other),
		},
		"it is of another delivery": {
			run: first, objects: there(of("other")), want: refused(other),
		},
		"it is of another stage": {
			run: first, objects: there(func(run *shipper.SequenceRun) { run.Spec.Stage = "staging" }), want: refused(other),
		},
		"it cannot be read": {
			run: first, objects: there(), unread: errors.New("it is down"),
			want: func(c *creation) {
				c.Err = "creating SequenceRun shop/" + c.Sent[0] + ", which follows from first: reading SequenceRun shop/" + c.Sent[0] +
					", which follows from first: it is down"
			},
		},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestARefusedFollowUpIsTriedAgainIfTheRefusalMayPass(t *testing.T) {
	first := runOf("first", ended(shipper.ResultPass))
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: runs.Group, Kind: "SequenceRun"}, "next", nil)
	forbidden := apierrors.NewForbidden(runs, "next", errors.New("exceeded quota: runs"))
	for sentence, tc := range map[string]followUpCase{
		"a run that is invalid is refused for good":         {run: first, refusal: invalid, want: refused(invalid.Error())},
		"a request that cannot be read is refused for good": {run: first, refusal: apierrors.NewBadRequest("no JSON"), want: refused("no JSON")},
		"a run that a quota forbids is tried again": {run: first, refusal: forbidden, want: func(c *creation) {
			c.Again, c.Triggered[0].Message = forbiddenAgain, forbidden.Error()
		}},
		"another error is returned, and the status stays": {run: first, refusal: errors.New("it is down"), want: func(c *creation) {
			c.Err = "creating SequenceRun shop/" + c.Sent[0] + ", which follows from first: it is down"
		}},
	} {
		t.Run(sentence, tc.check)
	}
}

func TestAFollowUpWaitsForWhatItsStageRequires(t *testing.T) {
	unsent := func(c *creation, why string, again time.Duration) {
		c.Sent, c.Again, c.Triggered[0].Message = nil, again, why
	}
	warned := with(func(of *shipper.ShipyardSnapshot) { // it triggers all the same
		of.Stages[1].Sequences[0].TriggeredOn[0].Selector = &shipper.TriggerSelector{Match: map[string]string{"result": "warning"}}
	})
	for sentence, tc := range map[string]followUpCase{
		"a version that has passed follows": {run: runOf("first", requires(""), ended(shipper.ResultPass)), want: created},
		"a version that has not passed waits for an event": {
			run: runOf("first", requires(""), warned, ended(shipper.ResultWarning)),
			want: func(c *creation) {
				unsent(c, "version 1.2.3 has not passed in stage staging; no version has", 0)
			},
		},
		"a version that soaks is looked at again": {
			run: runOf("first", requires("1h"), ended(shipper.ResultPass)),
			want: func(c *creation) {
				unsent(c, "version 1.2.3 passed in stage staging at 2026-03-01T12:00:00Z and has to soak for 1h: until 2026-03-01T13:00:00Z",
					time.Hour)
			},
		},
	} {
		t.Run(sentence, tc.check)
	}
}

// withRollback lets two runs follow from the end of delivery in staging: delivery, which soaks, and rollback of production.
func withRollback(of *shipper.ShipyardSnapshot) {
	production := &of.Stages[1]
	production.Sequences = append(production.Sequences, shipper.Sequence{
		Name: "rollback", Tasks: []shipper.Task{{Name: "rollback"}}, TriggeredOn: production.Sequences[0].TriggeredOn,
	})
}

func TestAFollowUpThatWaitsStopsNoOther(t *testing.T) {
	for sentence, tc := range map[string]followUpCase{
		"the second is created": {want: func(c *creation) {
			c.Again, c.Triggered[1].CreateTime = time.Hour, ptr.To(after(0))
		}},
		"the second is forbidden, and is tried again before the first": {
			refusal: apierrors.NewForbidden(runs, "next", errors.New("exceeded quota: runs")),
			want: func(c *creation) {
				c.Again, c.Triggered[1].Message = forbiddenAgain,
					`sequenceruns.shipper.booking.com "next" is forbidden: exceeded quota: runs`
			},
		},
	} {
		tc.run = runOf("first", requires("1h"), with(withRollback), ended(shipper.ResultPass))
		want := creation{Triggered: shipyard.FollowUps(tc.run, snapshotOf(tc.run))}
		want.Sent = []string{want.Triggered[1].Name}
		want.Triggered[0].Message =
			"version 1.2.3 passed in stage staging at 2026-03-01T12:00:00Z and has to soak for 1h: until 2026-03-01T13:00:00Z"
		tc.want(&want)
		if diff := cmp.Diff(want, tc.creates(t, 1)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestNoFollowUpIsNotedOnARunThatWasChangedMeanwhile(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{}, runOf("first", ended(shipper.ResultPass)))
	run, err := r.named(t.Context(), "shop", "first")
	if err != nil {
		t.Fatal(err)
	}
	changed := run.DeepCopy()
	changed.Spec.Hold = "lunch"
	if err := r.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if _, err := r.createFollowUps(t.Context(), run, nil); !apierrors.IsConflict(err) {
		t.Errorf("%v is not a conflict", err)
	}
}

// finishedAt moves the end of a run, by seconds from noon.
func finishedAt(seconds int) func(*shipper.SequenceRun) {
	return func(run *shipper.SequenceRun) { run.Status.FinishTime = ptr.To(after(seconds)) }
}

func TestRunsThatHistoryDoesNotKeepAreDeletedByUID(t *testing.T) {
	type deletion struct {
		Name string
		UID  types.UID
	}
	type pruned struct {
		Deleted []deletion
		Again   time.Duration
		Err     string
	}
	fails, down := ended(shipper.ResultFail), errors.New("it is down")
	newest := runOf("newest", fails)
	known := []*shipper.SequenceRun{
		newest, runOf("older", fails, finishedAt(-60)), runOf("oldest", fails, finishedAt(-120)), runOf("passed", ended(shipper.ResultPass),
			finishedAt(-180)), runOf("begun", started),
		runOf("other-stage", fails, finishedAt(-60), func(run *shipper.SequenceRun) { run.Spec.Stage = "production" }),
		runOf("other-service", fails, finishedAt(-60), func(run *shipper.SequenceRun) { run.Spec.Service = "shop" }),
	}
	one := theShipyard()
	one.Spec.History.Limit = ptr.To(int32(1))
	both := []deletion{{"older", "older-uid"}, {"oldest", "oldest-uid"}}
	for sentence, tc := range map[string]struct {
		yard          *shipper.Shipyard
		refusal, down error
		want          pruned
	}{
		"one failed run is kept":      {one, nil, nil, pruned{both, shipyard.DefaultHistoryMaxAge, ""}},
		"the Shipyard says no number": {theShipyard(), nil, nil, pruned{nil, shipyard.DefaultHistoryMaxAge - 2*time.Minute, ""}},
		"the Shipyard is gone":        {nil, nil, nil, pruned{nil, shipyard.DefaultHistoryMaxAge - 2*time.Minute, ""}},
		"they are gone already":       {one, apierrors.NewNotFound(runs, "x"), nil, pruned{both, shipyard.DefaultHistoryMaxAge, ""}},
		"a deletion fails":            {one, down, nil, pruned{both[:1], 0, "deleting SequenceRun shop/older: it is down"}},
		"the Shipyard cannot be read": {one, nil, down, pruned{nil, 0, "reading Shipyard shop/yard: it is down"}},
	} {
		var got pruned
		r := newReconciler(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if tc.down != nil {
					return tc.down
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				if _, is := obj.(*shipper.SequenceRun); !is {
					return nil // a revision
				}
				options := (&client.DeleteOptions{}).ApplyOptions(opts)
				got.Deleted = append(got.Deleted, deletion{obj.GetName(), *options.Preconditions.UID})
				return tc.refusal
			},
		})
		if tc.yard != nil {
			if err := r.client.Create(t.Context(), tc.yard.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		again, err := r.prune(t.Context(), newest, known)
		got.Again, got.Err = again, message(err)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}
