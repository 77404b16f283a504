// SPDX-License-Identifier: Apache-2.0

package sequencerun

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// maxRequesters bounds earlierRequesters, as the schema does.
const maxRequesters = 20

const byShipper = "is written by Shipper; leave it out"

// written has an error for each field that Shipper writes and a user sent.
func written(run *shipper.SequenceRun) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name string
		sent bool
	}{
		{"requestedBy", run.Spec.RequestedBy != shipper.ApprovalUser{}},
		{"earlierRequesters", len(run.Spec.EarlierRequesters) > 0},
		{"triggeredBy", run.Spec.TriggeredBy != nil},
		{"context", run.Spec.Context != ""},
		{"version", run.Spec.Version != shipper.RunVersion{}},
		{"snapshot", run.Spec.Snapshot != nil},
	} {
		if one.sent {
			errs = append(errs, field.Forbidden(specPath.Child(one.name), byShipper))
		}
	}
	return errs
}

// labelsOf are the labels by which runs are found.
func labelsOf(run *shipper.SequenceRun) map[string]string {
	return map[string]string{
		shipper.ShipyardLabel: run.Spec.Shipyard, shipper.StageLabel: run.Spec.Stage, shipper.SequenceLabel: run.Spec.Sequence,
		shipper.ServiceLabel: run.Spec.Service, shipper.ContextLabel: run.Spec.Context,
	}
}

// owners are those of a run: it goes with its Shipyard.
func owners(yard *shipper.Shipyard) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Shipyard", Name: yard.Name, UID: yard.UID}}
}

// label writes labels and owner of a run.
func label(run *shipper.SequenceRun, yard *shipper.Shipyard) {
	for key, value := range labelsOf(run) {
		response.Label(&run.ObjectMeta, key, value)
	}
	run.OwnerReferences = owners(yard)
}

// labelled has an error where labels or owner of a new run are not those that label writes.
func labelled(run *shipper.SequenceRun, yard *shipper.Shipyard) field.ErrorList {
	var errs field.ErrorList
	of := labelsOf(run)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if run.Labels[key] != of[key] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(key), byShipper))
		}
	}
	if !equality.Semantic.DeepEqual(run.OwnerReferences, owners(yard)) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "ownerReferences"), byShipper))
	}
	return errs
}

// retried is the run that a new one repeats; nil if it repeats none. It must be a finished run of the same Shipyard.
func (w *Webhook) retried(
	ctx context.Context, run *shipper.SequenceRun, yard *shipper.Shipyard, user string,
) (*shipper.SequenceRun, error) {
	if run.Spec.RetryOf == nil {
		return nil, nil
	}
	path := specPath.Child("retryOf")
	name, from := run.Spec.RetryOf.Run, run.Spec.RetryOf.From
	before, err := w.State.SequenceRunNow(ctx, types.NamespacedName{Namespace: run.Namespace, Name: name})
	if err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	refuse := func(why string) (*shipper.SequenceRun, error) {
		return nil, response.Invalidate(kind, run.Name, field.ErrorList{field.Invalid(path.Child("run"), name, why)})
	}
	switch {
	case before == nil:
		return nil, response.Invalidate(kind, run.Name, field.ErrorList{field.NotFound(path.Child("run"), name)})
	case before.Spec.Shipyard != run.Spec.Shipyard:
		return refuse("is a run of Shipyard " + before.Spec.Shipyard)
	case before.Spec.Snapshot == nil || before.Spec.Snapshot.UID != string(yard.UID):
		return refuse(fmt.Sprintf("is a run of a Shipyard %s that was deleted: create a run without retryOf", yard.Name))
	case !shipyard.IsFinished(before):
		return refuse("is under way: abort it, or wait until it has finished")
	case shipyard.WasRefused(before):
		return refuse("was refused before it began: create a run without retryOf")
	case before.Status.Result == shipper.ResultPass && from == "":
		return refuse("has passed: set from to the task to begin with, or create a run without retryOf")
	}
	sequence := shipyard.SequenceOf(before.Spec.Snapshot, before.Spec.Stage, before.Spec.Sequence)
	if from != "" && (sequence == nil || shipyard.TaskIndex(sequence, from) < 0) {
		return nil, response.Invalidate(kind, run.Name, field.ErrorList{field.Invalid(path.Child("from"), from,
			fmt.Sprintf("is no task of sequence %s in stage %s; the second of a name is NAME#2", before.Spec.Sequence, before.Spec.Stage))})
	}
	if from != "" {
		known, err := w.State.Runs(shipyardKey(run))
		if err != nil {
			return nil, err
		}
		if why := shipyard.NotAgain(before, from, known); why != "" {
			return nil, response.Invalidate(kind, run.Name, field.ErrorList{field.Invalid(path.Child("from"), from, why)})
		}
	}
	if len(requesters(before, user)) > maxRequesters {
		return refuse(fmt.Sprintf("more than %d users have requested it: create a run without retryOf", maxRequesters))
	}
	return before, response.Invalidate(kind, run.Name, others(run, before))
}

// others has an error for each field that a retry copies and the user sent another value of.
func others(run, before *shipper.SequenceRun) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name       string
		sent       bool
		now, there any
	}{
		{"stage", run.Spec.Stage != "", run.Spec.Stage, before.Spec.Stage},
		{"sequence", run.Spec.Sequence != "", run.Spec.Sequence, before.Spec.Sequence},
		{"service", run.Spec.Service != "", run.Spec.Service, before.Spec.Service},
		{"data", len(run.Spec.Data) > 0, run.Spec.Data, before.Spec.Data},
	} {
		if one.sent && !shipyard.Same(one.now, one.there) {
			errs = append(errs, field.Forbidden(specPath.Child(one.name), "is copied from run "+before.Name+": leave it out"))
		}
	}
	return errs
}

// repeat copies into a run all of the run that it repeats. It belongs to the same delivery, and has its context.
func repeat(run, before *shipper.SequenceRun, user string) {
	from := before.DeepCopy().Spec
	run.Spec.Stage, run.Spec.Sequence, run.Spec.Service = from.Stage, from.Sequence, from.Service
	run.Spec.Data, run.Spec.Context = from.Data, from.Context
	run.Spec.Snapshot, run.Spec.Version = from.Snapshot, from.Version
	run.Spec.EarlierRequesters = requesters(before, user)
}

// requesters are the users who requested a run and those that it repeats, the newest first, without the user who repeats it now.
func requesters(before *shipper.SequenceRun, user string) []string {
	var out []string
	for _, name := range append([]string{before.Spec.RequestedBy.Username}, before.Spec.EarlierRequesters...) {
		if name != user && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// stamped refuses a run of a user that does not have what Default writes. It does not rely on an earlier Default.
func (w *Webhook) stamped(ctx context.Context, req *admission.Request, run *shipper.SequenceRun, yard *shipper.Shipyard) error {
	before, err := w.retried(ctx, run, yard, req.UserInfo.Username)
	if err != nil {
		return err
	}
	want := run.DeepCopy()
	want.Spec.RequestedBy = shipper.ApprovalUser{Username: req.UserInfo.Username, UID: req.UserInfo.UID}
	want.Spec.TriggeredBy, want.Spec.EarlierRequesters = nil, nil
	if before != nil {
		repeat(want, before, req.UserInfo.Username)
	} else {
		want.Spec.Snapshot = shipyard.Snapshot(yard)
		if given := run.Spec.Snapshot; given != nil && given.UID == want.Spec.Snapshot.UID && given.Generation < yard.Generation {
			return response.Later(fmt.Sprintf("Shipyard %s was changed while the run was created: create it again", yard.Name), authz.RetryAfter)
		}
		known, err := w.State.Runs(shipyardKey(run))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(known, func(other *shipper.SequenceRun) bool { return other.Spec.Context == run.Spec.Context }) {
			want.Spec.Context = "" // it is that of another delivery
		}
		if !shipyard.Deploys(&want.Spec) {
			want.Spec.Version = shipper.RunVersion{}
		}
	}
	var errs field.ErrorList
	for _, one := range []struct {
		name      string
		got, want any
	}{
		{"requestedBy", run.Spec.RequestedBy, want.Spec.RequestedBy},
		{"earlierRequesters", run.Spec.EarlierRequesters, want.Spec.EarlierRequesters},
		{"triggeredBy", run.Spec.TriggeredBy, want.Spec.TriggeredBy},
		{"context", run.Spec.Context, want.Spec.Context},
		{"version", run.Spec.Version, want.Spec.Version},
		{"snapshot", run.Spec.Snapshot, want.Spec.Snapshot},
	} {
		if !shipyard.Same(one.got, one.want) {
			errs = append(errs, field.Forbidden(specPath.Child(one.name), byShipper))
		}
	}
	if run.Spec.Context == "" {
		errs = append(errs, field.Required(specPath.Child("context"), "is written by Shipper, whose mutating webhook was not called"))
	}
	if shipyard.Deploys(&want.Spec) && run.Spec.Version.Version == "" {
		errs = append(errs, field.Required(specPath.Child("version"), "is written by Shipper, whose mutating webhook was not called"))
	}
	return response.Invalidate(kind, run.Name, errs)
}
