// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxRequesters bounds the users who requested runs that a run repeats.
const maxRequesters = 20

var specPath = field.NewPath("spec")

// Refusal is why a run is not started. The webhook refuses the creation with it, and the reconciler ends the run with it.
type Refusal struct {
	// Invalid are fields that the run cannot have.
	Invalid field.ErrorList
	// Forbidden is why the run is not started, although its fields are valid.
	Forbidden string
}

// Error is the sentence for users.
func (r *Refusal) Error() string {
	if len(r.Invalid) > 0 {
		return r.Invalid.ToAggregate().Error()
	}
	return r.Forbidden
}

func invalid(errs ...*field.Error) *Refusal { return &Refusal{Invalid: errs} }

func forbidden(why string) *Refusal { return &Refusal{Forbidden: why} }

// Request is a new run of a user, and what it is judged by.
type Request struct {
	Run *shipper.SequenceRun
	// Yard is its Shipyard; nil if there is none. Others are the names of those of the namespace.
	Yard   *shipper.Shipyard
	Others []string
	// RetryOf is the run that it repeats; nil if there is none.
	RetryOf *shipper.SequenceRun
	// Known are other runs of the Shipyard.
	Known []*shipper.SequenceRun
}

// Resolve decides what a run does. The version of a run that deploys is still to be resolved, unless it repeats another.
func Resolve(r *Request) (*shipper.ResolvedRun, *Refusal) {
	switch {
	case r.Yard == nil:
		problem := field.NotFound(specPath.Child("shipyard"), r.Run.Spec.Shipyard)
		problem.Detail = "there is no Shipyard in namespace " + r.Run.Namespace
		if len(r.Others) > 0 {
			problem.Detail = "there are: " + strings.Join(slices.Sorted(slices.Values(r.Others)), ", ")
		}
		return nil, invalid(problem)
	case r.Yard.DeletionTimestamp != nil:
		return nil, forbidden(fmt.Sprintf("Shipyard %s is being deleted: no run of it starts", r.Yard.Name))
	case r.Run.Spec.RetryOf != nil:
		return r.repeat()
	}
	if errs := ValidateRun(r.Run, &r.Yard.Spec); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	snapshot := Snapshot(r.Yard)
	out := Resolved(snapshot, r.Run.Spec.Stage, r.Run.Spec.Sequence)
	out.Revision, out.Context = RevisionOf(r.Yard), string(r.Run.UID)
	if !sequenceDeploys(&out.Sequence) {
		return out, nil
	}
	_, refusal := RequestedVersion(r.Run)
	return out, refusal
}

// Resolved is what a run of a sequence does; nil if of has none of the name.
func Resolved(of *shipper.ShipyardSnapshot, stage, sequence string) *shipper.ResolvedRun {
	its, does := OfStage(of, stage), SequenceOf(of, stage, sequence)
	if its == nil || does == nil {
		return nil
	}
	out := &shipper.ResolvedRun{ServiceAccountName: of.ServiceAccountName, Stage: *its.DeepCopy(), Sequence: *does.DeepCopy()}
	out.Stage.Sequences = nil
	return out
}

// repeat is what a retry does: the same as the run that it repeats, which must be a finished one of the same Shipyard.
func (r *Request) repeat() (*shipper.ResolvedRun, *Refusal) {
	run, before, path := r.Run, r.RetryOf, specPath.Child("retryOf")
	name, from := run.Spec.RetryOf.Run, run.Spec.RetryOf.From
	refuse := func(why string) (*shipper.ResolvedRun, *Refusal) {
		return nil, invalid(field.Invalid(path.Child("run"), name, why))
	}
	switch {
	case before == nil:
		return nil, invalid(field.NotFound(path.Child("run"), name))
	case before.Spec.Shipyard != run.Spec.Shipyard:
		return refuse("is a run of Shipyard " + before.Spec.Shipyard)
	case !IsFinished(before):
		return refuse("is under way: abort it, or wait until it has finished")
	case WasRefused(before), before.Status.Resolved == nil:
		return refuse("was refused before it began: create a run without retryOf")
	case before.Status.Resolved.Revision.UID != string(r.Yard.UID):
		return refuse(fmt.Sprintf("is a run of a Shipyard %s that was deleted: create a run without retryOf", r.Yard.Name))
	case before.Status.Result == shipper.ResultPass && from == "":
		return refuse("has passed: set from to the task to begin with, or create a run without retryOf")
	case from != "" && TaskIndex(OwnSequence(before), from) < 0:
		return nil, invalid(field.Invalid(path.Child("from"), from, fmt.Sprintf(
			"is no task of sequence %s in stage %s; the second of a name is NAME#2", before.Spec.Sequence, before.Spec.Stage)))
	}
	if why := NotAgain(before, from, run.UID, r.Known); why != "" {
		return nil, invalid(field.Invalid(path.Child("from"), from, why))
	}
	earlier := earlierRequesters(before, run.Spec.RequestedBy.Username)
	if len(earlier) > maxRequesters {
		return refuse(fmt.Sprintf("more than %d users have requested it: create a run without retryOf", maxRequesters))
	}
	if errs := append(copied(run, before), validateName(run)...); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	out := before.Status.Resolved.DeepCopy()
	out.EarlierRequesters, out.TriggeredBy, out.RetryOfUID = earlier, nil, string(before.UID)
	out.Data = firstData(before).DeepCopy()
	return out, nil
}

// copied has an error for each field that a retry copies and the user sent another value of.
func copied(run, before *shipper.SequenceRun) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name       string
		sent       bool
		now, there any
	}{
		{"stage", true, run.Spec.Stage, before.Spec.Stage},
		{"sequence", true, run.Spec.Sequence, before.Spec.Sequence},
		{"service", true, run.Spec.Service, before.Spec.Service},
		{"data", len(run.Spec.Data) > 0, run.Spec.Data, firstData(before)},
	} {
		if one.sent && !Same(one.now, one.there) {
			errs = append(errs, field.Forbidden(specPath.Child(one.name), "is copied from run "+before.Name+": leave it out"))
		}
	}
	return errs
}

// earlierRequesters are the users who requested a run and those that it repeats, the newest first, without the user who repeats it now.
func earlierRequesters(before *shipper.SequenceRun, user string) []string {
	var out []string
	for _, name := range Requesters(before) {
		if name != user && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Admit refuses a resolved run beyond the bounds, or of a version that lacks what its stage requires, among the other runs of its Shipyard.
// of is the revision of the Shipyard, and skipped is what a run skips of what its stage requires.
func Admit(
	run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, known []*shipper.SequenceRun, now time.Time,
) (skipped []string, refusal *Refusal) {
	if why := TooMany(run, of, known); why != "" {
		return nil, forbidden(why)
	}
	unmet, _ := Unmet(run, known, now)
	if len(unmet) == 0 || run.Spec.SkipRequires != nil {
		return unmet, nil
	}
	return nil, forbidden(fmt.Sprintf("stage %s of shipyard %s requires more: %s; to run it all the same, set spec.skipRequires with a "+
		"reason (%s)", run.Spec.Stage, run.Spec.Shipyard, strings.Join(unmet, "; "),
		stageRight("override", run.Namespace, run.Spec.Shipyard, run.Spec.Stage)))
}

// stageRight says which right a user lacks on a stage of a Shipyard.
func stageRight(verb, namespace, shipyard, stage string) string {
	return fmt.Sprintf("the verb %s on shipyards/%s or shipyards of %s, name %s, in namespace %s is needed", verb, stage, shipper.GroupName,
		shipyard, namespace)
}

// RunnerMayNot refuses a resolved run whose ServiceAccount may not write the Application of its stage.
func RunnerMayNot(run *shipper.SequenceRun) *Refusal {
	account, key := run.Status.Resolved.ServiceAccountName, ApplicationOfRun(run)
	return forbidden(fmt.Sprintf("ServiceAccount %s/%s, with whose rights runs of shipyard %s write, may not patch applications/%s in %s: "+
		"who owns that namespace allows it by: %s", run.Namespace, account, run.Spec.Shipyard, key.Name, key.Namespace,
		shipper.BindRunnerCommand(run.Namespace, account, key.Namespace)))
}
