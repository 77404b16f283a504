// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// finished ends the names of events about ends.
const finished = ".finished"

// admit changes what the API server and the webhook would refuse, and notes it.
func (r *reader) admit(spec *shipper.ShipyardSpec) {
	r.triggersThatMatch(spec)
	r.withTasks(spec)
	r.names(spec)
	r.scoresAndProperties(spec)
	r.bounds(spec)
}

// triggersThatMatch removes triggers whose selector never matches: Keptn's controller does not start a sequence by them either (KS2).
func (r *reader) triggersThatMatch(spec *shipper.ShipyardSpec) {
	eachSequence(spec, func(at string, sequence *shipper.Sequence) {
		var kept []shipper.Trigger
		for i, t := range sequence.TriggeredOn {
			one := shipper.ShipyardSpec{Stages: []shipper.Stage{{Name: "a", Sequences: []shipper.Sequence{
				{Name: "b", TriggeredOn: []shipper.Trigger{t}, Tasks: []shipper.Task{{Name: rules.TaskTest}}},
			}}}}
			errs := rules.Validate("", &one, field.NewPath("spec"))
			switch {
			case len(t.Event) > maxEvent:
				r.note(fmt.Sprintf("%s.triggeredOn[%d].event", at, i), "the trigger is left out: an event has at most %d characters", maxEvent)
			case len(errs) > 0:
				r.note(fmt.Sprintf("%s.triggeredOn[%d].selector", at, i), "the trigger is left out: event %s: %s", t.Event, errs[0].ErrorBody())
			default:
				kept = append(kept, t)
			}
		}
		sequence.TriggeredOn = kept
	})
}

// refusedProperty is the path of a property that the webhook refuses.
var refusedProperty = regexp.MustCompile(`^spec\.stages\[(\d+)\]\.sequences\[(\d+)\]\.tasks\[(\d+)\]\.properties(?:\.(.+)|\[(.+)\])$`)

// scoresAndProperties converts scores of evaluations, and removes properties that the webhook refuses.
func (r *reader) scoresAndProperties(spec *shipper.ShipyardSpec) {
	eachTask(spec, func(_ string, task *shipper.Task) {
		if task.Name != rules.TaskEvaluation && task.Name != rules.TaskEvaluate {
			return
		}
		for _, name := range []string{"pass", "warning"} {
			text, _ := task.Properties[name].(string)
			if score, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%"))); err == nil {
				task.Properties[name] = int64(score)
			}
		}
	})
	for {
		removed := false
		for _, err := range rules.Validate("", spec, field.NewPath("spec")) {
			at := refusedProperty.FindStringSubmatch(err.Field)
			if at == nil {
				continue
			}
			task := &spec.Stages[number(at[1])].Sequences[number(at[2])].Tasks[number(at[3])]
			removed = r.refused(err, task, at[4]+at[5]) || removed
		}
		if !removed {
			return
		}
	}
}

// refused removes a property; false if the task has none of the name. More approvals than there may be are as many as there may be: none
// would be one.
func (r *reader) refused(err *field.Error, task *shipper.Task, name string) bool {
	value, has := task.Properties[name]
	if !has { // the error is about a part of it
		name, _, _ = strings.Cut(name, ".")
		if _, has = task.Properties[name]; !has {
			return false
		}
	}
	task.Properties = maps.Clone(task.Properties)
	if name == "approvals" && task.Name == rules.TaskApproval && atLeast(value, rules.MaxApprovals) {
		task.Properties[name] = int64(rules.MaxApprovals)
		r.note(err.Field, "%s; it is %d here", err.ErrorBody(), rules.MaxApprovals)
		return true
	}
	delete(task.Properties, name)
	r.note(err.Field, "is left out: %s", err.ErrorBody())
	return true
}

// atLeast reports whether a JSON value is a number, and n or more.
func atLeast(value any, n float64) bool {
	switch is := value.(type) {
	case int64:
		return float64(is) >= n
	case float64:
		return is >= n
	}
	return false
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// withTasks removes sequences without tasks: there is nothing that a run would do (KS19).
func (r *reader) withTasks(spec *shipper.ShipyardSpec) {
	eachSequence(spec, func(at string, sequence *shipper.Sequence) {
		if len(sequence.Tasks) == 0 {
			r.note(at, "sequence %s has no tasks, and is left out", sequence.Name)
		}
	})
	for i := range spec.Stages {
		spec.Stages[i].Sequences = slices.DeleteFunc(spec.Stages[i].Sequences, func(s shipper.Sequence) bool { return len(s.Tasks) == 0 })
	}
}

// The most that the schema takes.
const (
	maxSequences = 20
	maxTasks     = 50
	maxTriggers  = 20
	maxEvent     = 200
)

// bounds notes lists that are too long: what is to go is for a person to decide.
func (r *reader) bounds(spec *shipper.ShipyardSpec) {
	most := func(at string, n, most int) {
		if n > most {
			r.note(at, "is refused: it has %d items, and may have %d", n, most)
		}
	}
	most("spec.stages", len(spec.Stages), rules.MaxStages)
	for i := range spec.Stages {
		most(fmt.Sprintf("spec.stages[%d].sequences", i), len(spec.Stages[i].Sequences), maxSequences)
	}
	eachSequence(spec, func(at string, sequence *shipper.Sequence) {
		most(at+".tasks", len(sequence.Tasks), maxTasks)
		most(at+".triggeredOn", len(sequence.TriggeredOn), maxTriggers)
	})
}

func eachSequence(spec *shipper.ShipyardSpec, do func(at string, sequence *shipper.Sequence)) {
	for i := range spec.Stages {
		for j := range spec.Stages[i].Sequences {
			do(fmt.Sprintf("spec.stages[%d].sequences[%d]", i, j), &spec.Stages[i].Sequences[j])
		}
	}
}

func eachTask(spec *shipper.ShipyardSpec, do func(at string, task *shipper.Task)) {
	eachSequence(spec, func(at string, sequence *shipper.Sequence) {
		for k := range sequence.Tasks {
			do(fmt.Sprintf("%s.tasks[%d]", at, k), &sequence.Tasks[k])
		}
	})
}
