// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of runs.
const (
	// MaxOfSequence bounds the runs of one sequence of one stage in one context, and with the number of sequences the runs that lead to one:
	// circles of triggers end there, the longest where history has deleted the runs before.
	MaxOfSequence = 20
	// MaxUnfinished bounds the unfinished runs of a stage of a Shipyard: who may start runs in one stage stops none in another.
	MaxUnfinished = 200
)

// Default fills in what a run leaves out: what the run has that it repeats, or else the first stage, the only sequence of a stage, and the
// only service. The Shipyard, and that run, must be there.
func Default(r *Request) {
	run, of := &r.Run.Spec, &r.Yard.Spec
	if r.RetryOf != nil {
		was := &r.RetryOf.Spec
		run.Stage, run.Sequence = cmp.Or(run.Stage, was.Stage), cmp.Or(run.Sequence, was.Sequence)
		run.Service = cmp.Or(run.Service, was.Service)
		return
	}
	if run.Stage == "" && len(of.Stages) > 0 {
		run.Stage = of.Stages[0].Name
	}
	if run.Service == "" && len(of.Services) == 1 {
		run.Service = of.Services[0]
	}
	at := slices.IndexFunc(of.Stages, func(s shipper.Stage) bool { return s.Name == run.Stage })
	if run.Sequence == "" && at >= 0 && len(of.Stages[at].Sequences) == 1 {
		run.Sequence = of.Stages[at].Sequences[0].Name
	}
}

// ValidateRun refuses a new run that its Shipyard cannot run. It says what the Shipyard has.
func ValidateRun(run *shipper.SequenceRun, of *shipper.ShipyardSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateNames(run.Namespace, &run.Spec, of, path)
	raw, err := json.Marshal(run.Spec.Data)
	if err != nil || len(raw) > MaxData {
		errs = append(errs, field.Forbidden(path.Child("data"),
			fmt.Sprintf("%d KiB of %d: put it into a store and pass its URL", (len(raw)+1023)>>10, MaxData>>10)))
	}
	if run.Spec.Service != "" {
		for _, problem := range validation.IsValidLabelValue(run.Spec.Service) {
			errs = append(errs, field.Invalid(path.Child("service"), run.Spec.Service, "is a label of the run: "+problem))
		}
	}
	return append(errs, validateName(run)...)
}

// validateName refuses names that no user may give a run.
func validateName(run *shipper.SequenceRun) (errs field.ErrorList) {
	name := field.NewPath("metadata", "name")
	if IsNameOfFollowUp(run.Name) {
		errs = append(errs, field.Invalid(name, run.Name, "is one of a run that follows from another: leave out dots"))
	}
	if len(run.Name) > MaxRunName {
		errs = append(errs, field.Invalid(name, run.Name,
			fmt.Sprintf("is a label of its Approvals: must be no more than %d bytes", MaxRunName)))
	}
	return errs
}

// validateNames refuses a run in a namespace that names what a Shipyard does not have, with what it has.
func validateNames(namespace string, run *shipper.SequenceRunSpec, of *shipper.ShipyardSpec, path *field.Path) field.ErrorList {
	var stages, sequences []string
	var stage *shipper.Stage
	for i := range of.Stages {
		stages = append(stages, of.Stages[i].Name)
		if of.Stages[i].Name == run.Stage {
			stage = &of.Stages[i]
		}
	}
	if stage == nil {
		return field.ErrorList{named(path.Child("stage"), run.Stage, "stage", stages)}
	}
	var errs field.ErrorList
	for i := range stage.Sequences {
		sequences = append(sequences, stage.Sequences[i].Name)
	}
	if !slices.Contains(sequences, run.Sequence) && run.Sequence != TaskEvaluation { // KS19
		errs = append(errs, named(path.Child("sequence"), run.Sequence, "sequence", sequences))
	}
	switch {
	case len(of.Services) > 0 && !slices.Contains(of.Services, run.Service):
		errs = append(errs, named(path.Child("service"), run.Service, "service", of.Services))
	case run.Service == "":
		errs = append(errs, field.Required(path.Child("service"), "name what is delivered"))
	}
	if other := stageWithSameApplication(namespace, of, stage, run); other != "" {
		errs = append(errs, field.Invalid(path.Child("service"), run.Service, "its Application in stage "+stage.Name+" may be one of stage "+
			other+": give the service another name, or the stages namespaces of their own"))
	}
	for _, key := range slices.Sorted(maps.Keys(run.Data)) {
		if Reserved(key) {
			errs = append(errs, field.Forbidden(path.Child("data").Key(key), "is written by Shipper: leave it out"))
		}
	}
	return errs
}

// stageWithSameApplication is another stage whose pattern fits the Application of a service in a stage, so that who may deploy to one
// could reach what the other deploys; empty if there is none.
func stageWithSameApplication(namespace string, of *shipper.ShipyardSpec, stage *shipper.Stage, run *shipper.SequenceRunSpec) string {
	name := ApplicationOf(stage, run.Shipyard, run.Service)
	for i := range of.Stages {
		other := &of.Stages[i]
		if other.Name == stage.Name || cmp.Or(other.Namespace, namespace) != cmp.Or(stage.Namespace, namespace) || !deploys(other) {
			continue
		}
		before, after, _ := strings.Cut(ApplicationOf(other, run.Shipyard, "\x00"), "\x00")
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return other.Name
		}
	}
	return ""
}

// named refuses a name that is none of known.
func named(path *field.Path, name, what string, known []string) *field.Error {
	there := "there are: " + strings.Join(known, ", ")
	if len(known) == 0 {
		there = "there is none"
	}
	if name == "" {
		return field.Required(path, "name a "+what+"; "+there)
	}
	return field.Invalid(path, name, "is no "+what+" of the shipyard; "+there)
}

// sequences is how many a snapshot has: each stage has evaluation beside its own.
func sequences(of *shipper.ShipyardSnapshot) int {
	n := 0
	if of != nil {
		for i := range of.Stages {
			n += len(of.Stages[i].Sequences) + 1
		}
	}
	return n
}

// TooMany says which bound a new run exceeds, among the runs of its Shipyard, of which of is the revision; empty for none.
func TooMany(run *shipper.SequenceRun, of *shipper.ShipyardSnapshot, known []*shipper.SequenceRun) string {
	same, unfinished, spec := 0, 0, &run.Spec
	for _, other := range known {
		if !IsFinished(other) && other.Spec.Stage == spec.Stage {
			unfinished++
		}
		if other.Status.Resolved != nil && ContextOf(other) == ContextOf(run) && other.Spec.Stage == spec.Stage &&
			other.Spec.Sequence == spec.Sequence {
			same++
		}
	}
	switch deepest := MaxOfSequence * (1 + sequences(of)); {
	case int(depth(run.Status.Resolved)) > deepest:
		return fmt.Sprintf("more than %d runs lead here, each triggered by the one before: the triggers are a circle", deepest)
	case same >= MaxOfSequence:
		return fmt.Sprintf("%d runs of sequence %s in stage %s follow from one another: the triggers are a circle", same, spec.Sequence,
			spec.Stage)
	case unfinished >= MaxUnfinished && depth(run.Status.Resolved) == 0: // what follows is part of what was admitted
		return fmt.Sprintf("%d runs of stage %s of shipyard %s are not finished: wait, or abort some", unfinished, spec.Stage, spec.Shipyard)
	}
	return ""
}
