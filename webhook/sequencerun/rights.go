// SPDX-License-Identifier: Apache-2.0

package sequencerun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// permit refuses a run that names what its Shipyard lacks, and a user who may not start it.
func (w *Webhook) permit(ctx context.Context, req *admission.Request, run *shipper.SequenceRun, yard *shipper.Shipyard) error {
	of := yard.Spec
	if run.Spec.RetryOf != nil { // the Shipyard may have changed since
		of = shipper.ShipyardSpec{Stages: run.Spec.Snapshot.Stages}
	}
	if err := response.Invalidate(kind, run.Name, shipyard.ValidateRun(run, &of)); err != nil {
		return err
	}
	if shipyard.Deploys(&run.Spec) {
		if _, err := askedVersion(run); err != nil {
			return err
		}
	}
	key, stage := shipyardKey(run), run.Spec.Stage
	needs := []string{authz.Promote}
	if run.Spec.SkipRequires != nil {
		needs = append(needs, authz.Override)
	}
	for _, verb := range needs {
		allowed, err := authz.OnStage(ctx, w.Authz, req.UserInfo, verb, key, stage)
		what := map[string]string{authz.Promote: "start runs", authz.Override: "skip what is required"}[verb]
		switch {
		case err != nil:
			return response.Later(err.Error(), authz.RetryAfter)
		case !allowed:
			return response.Forbid(resource, run.Name, fmt.Sprintf("user %q may not %s in stage %s of shipyard %s: %s", req.UserInfo.Username, what,
				stage, yard.Name, authz.StageRemedy(verb, key, stage)))
		}
	}
	return w.permitRunner(ctx, run)
}

// judge refuses a run beyond the bounds, or of a version that lacks what its stage requires. It returns what the run skips. before is the
// run that it follows from, which the cache may not have as finished yet.
func (w *Webhook) judge(
	ctx context.Context, run *shipper.SequenceRun, yard *shipper.Shipyard, before *shipper.SequenceRun,
) (skipped []string, err error) {
	known, err := w.State.Runs(shipyardKey(run))
	if err != nil {
		return nil, err
	}
	known = with(known, before)
	if why := shipyard.TooMany(&run.Spec, known); why != "" {
		if run.Spec.TriggeredBy != nil { // it does not pass with time
			problem := field.Invalid(specPath.Child("triggeredBy"), run.Spec.TriggeredBy.Run, why)
			return nil, response.Invalidate(kind, run.Name, field.ErrorList{problem})
		}
		return nil, response.Forbid(resource, run.Name, why)
	}
	unmet, _ := shipyard.Unmet(&run.Spec, known, w.Clock.Now())
	if len(unmet) == 0 {
		return nil, nil
	}
	if run.Spec.SkipRequires != nil {
		return unmet, nil
	}
	// The cache may be behind: a run that has just passed counts.
	var fresh []*shipper.SequenceRun
	for _, stage := range required(run) {
		found, err := w.State.RunsNow(ctx, shipyardKey(run), stage, run.Spec.Service)
		if err != nil {
			return nil, response.Later(err.Error(), authz.RetryAfter)
		}
		fresh = append(fresh, found...)
	}
	if unmet, _ = shipyard.Unmet(&run.Spec, with(fresh, before), w.Clock.Now()); len(unmet) == 0 {
		return nil, nil
	}
	key := shipyardKey(run)
	return nil, response.Forbid(resource, run.Name, fmt.Sprintf("stage %s of shipyard %s requires more: %s; to run it all the same, set "+
		"spec.skipRequires with a reason (%s)", run.Spec.Stage, yard.Name, strings.Join(unmet, "; "),
		authz.StageRemedy(authz.Override, key, run.Spec.Stage)))
}

// required are the stages that the stage of a run requires, each once.
func required(run *shipper.SequenceRun) []string {
	var out []string
	for _, one := range shipyard.StageOf(&run.Spec).Requires {
		out = append(out, one.Stage)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// with are runs, of which one is as it was read last.
func with(runs []*shipper.SequenceRun, one *shipper.SequenceRun) []*shipper.SequenceRun {
	if one == nil {
		return runs
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(other *shipper.SequenceRun) bool { return other.Name == one.Name })
	return append(runs, one)
}

// judgeFollowUp refuses a run of the reconciler that does not follow from the end of another: each run is started by a user, or by the
// triggers of one that a user started.
func (w *Webhook) judgeFollowUp(ctx context.Context, run *shipper.SequenceRun, yard *shipper.Shipyard) error {
	path := specPath.Child("triggeredBy")
	refuse := func(path *field.Path, value any, why string) error {
		return response.Invalidate(kind, run.Name, field.ErrorList{field.Invalid(path, value, why)})
	}
	by := run.Spec.TriggeredBy
	if by == nil || by.Run == "" {
		return response.Invalidate(kind, run.Name, field.ErrorList{field.Required(path.Child("run"), "name the run that this one follows from")})
	}
	before, err := w.State.SequenceRunNow(ctx, types.NamespacedName{Namespace: run.Namespace, Name: by.Run})
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case before == nil:
		return response.Invalidate(kind, run.Name, field.ErrorList{field.NotFound(path.Child("run"), by.Run)})
	case !shipyard.IsFinished(before):
		return refuse(path.Child("run"), by.Run, "has not finished")
	case before.Spec.Snapshot == nil || before.Spec.Snapshot.UID != string(yard.UID):
		return refuse(path.Child("run"), by.Run, fmt.Sprintf("is a run of a Shipyard %s that was deleted", yard.Name))
	}
	follows := func(one shipper.TriggeredRun) bool {
		return one.Name == run.Name && one.Stage == run.Spec.Stage && one.Sequence == run.Spec.Sequence && one.Event == by.Event
	}
	if !slices.ContainsFunc(before.Status.Triggered, follows) || !slices.ContainsFunc(shipyard.FollowUps(before), follows) {
		return refuse(path, by.Event, fmt.Sprintf("run %s does not trigger sequence %s in stage %s by this event as run %s", by.Run,
			run.Spec.Sequence, run.Spec.Stage, run.Name))
	}
	if depth := shipyard.NextDepth(&before.Spec); by.Depth != depth {
		return refuse(path.Child("depth"), by.Depth, fmt.Sprintf("is %d for a run that follows from %s", depth, by.Run))
	}
	if err := response.Invalidate(kind, run.Name, inherited(run, before)); err != nil {
		return err
	}
	of := shipper.ShipyardSpec{Stages: run.Spec.Snapshot.Stages}
	if err := response.Invalidate(kind, run.Name, shipyard.ValidateRun(run, &of)); err != nil {
		return err
	}
	if shipyard.Deploys(&run.Spec) && run.Spec.Version.Version == "" {
		return refuse(specPath.Child("version"), "", "the first run of the delivery deploys nothing, and so has no version")
	}
	_, err = w.judge(ctx, run, yard, before)
	return err
}

// inherited has an error for each field that a run that follows does not have from the one before.
func inherited(run, before *shipper.SequenceRun) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name      string
		got, want any
	}{
		{"shipyard", run.Spec.Shipyard, before.Spec.Shipyard},
		{"service", run.Spec.Service, before.Spec.Service},
		{"requestedBy", run.Spec.RequestedBy, before.Spec.RequestedBy},
		{"earlierRequesters", run.Spec.EarlierRequesters, before.Spec.EarlierRequesters},
		{"context", run.Spec.Context, before.Spec.Context},
		{"version", run.Spec.Version, before.Spec.Version},
		{"snapshot", run.Spec.Snapshot, before.Spec.Snapshot},
	} {
		if !shipyard.Same(one.got, one.want) {
			errs = append(errs, field.Forbidden(specPath.Child(one.name), "is not that of run "+before.Name))
		}
	}
	if run.Spec.RetryOf != nil || run.Spec.SkipRequires != nil {
		errs = append(errs, field.Forbidden(specPath, "retryOf and skipRequires are for runs that users create"))
	}
	return errs
}
