// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds and defaults of the task evaluation.
const (
	MaxChecks      = 10
	DefaultPass    = 90
	DefaultWarning = 75
	maxScore       = 100
	maxWeight      = 1000
)

// NothingMeasured is the message of an evaluation that names no Check.
const NothingMeasured = "nothing was measured: properties.checks names no Check"

// Evaluation is what the task evaluation asks for.
type Evaluation struct {
	Checks []EvaluationCheck
	// Pass and Warning are the least scores, 0 to 100, for these results.
	Pass, Warning int
}

// EvaluationCheck is a Check that is measured.
type EvaluationCheck struct {
	Check, Name string
	Args        map[string]string
	// Weight in the score, and Key is true if the evaluation fails with this check.
	Weight int
	Key    bool
}

// EvaluationOf reads the properties of a task evaluation. Errors name the property.
func EvaluationOf(properties shipper.FreeForm) (Evaluation, error) {
	out := Evaluation{Pass: DefaultPass, Warning: DefaultWarning}
	for name, to := range map[string]*int{"pass": &out.Pass, "warning": &out.Warning} {
		if value, given := properties[name]; given {
			n, ok := whole(value)
			if !ok || n < 0 || n > maxScore {
				return out, fmt.Errorf("%s: %v is not a number from 0 to %d", name, value, maxScore)
			}
			*to = n
		}
	}
	if out.Warning > out.Pass {
		return out, fmt.Errorf("warning: %d is more than pass, %d", out.Warning, out.Pass)
	}
	given, is := properties["checks"]
	if !is {
		return out, nil
	}
	list, isList := given.([]any)
	if !isList || len(list) > MaxChecks {
		return out, fmt.Errorf("checks: must be a list of at most %d", MaxChecks)
	}
	names := map[string]bool{}
	for i, one := range list {
		c, err := evaluationCheck(one)
		if err != nil {
			return out, fmt.Errorf("checks: number %d: %w", i, err)
		}
		if names[c.Name] {
			return out, fmt.Errorf("checks: two have the name %s: give one another name", c.Name)
		}
		names[c.Name] = true
		out.Checks = append(out.Checks, c)
	}
	return out, nil
}

// measuresNothing reports whether a task is an evaluation that names no Check: it passes.
func measuresNothing(task *shipper.Task) bool {
	if task.Name != TaskEvaluation && task.Name != TaskEvaluate {
		return false
	}
	wanted, err := EvaluationOf(task.Properties)
	return err == nil && len(wanted.Checks) == 0
}

// warnUnmeasured names the evaluations of a Shipyard that measure nothing, in one warning.
func warnUnmeasured(spec *shipper.ShipyardSpec) []string {
	var at, names []string
	for i := range spec.Stages {
		for j := range spec.Stages[i].Sequences {
			for k := range spec.Stages[i].Sequences[j].Tasks {
				if task := &spec.Stages[i].Sequences[j].Tasks[k]; measuresNothing(task) {
					at, names = append(at, fmt.Sprintf("stages[%d].sequences[%d].tasks[%d]", i, j, k)), append(names, task.Name)
				}
			}
		}
	}
	const why = "names no Checks: it passes, and nothing is measured; name Checks in properties.checks"
	switch len(at) {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("%s: task %s %s", at[0], names[0], why)}
	}
	return []string{fmt.Sprintf("%s: task %s %s (the same for %d more: %s)", at[0], names[0], why, len(at)-1,
		strings.Join(at[1:min(len(at), maxNamed+1)], ", ")+more(len(at)-1-maxNamed))}
}

// maxNamed bounds the tasks that a warning names beside the first one.
const maxNamed = 5

// more ends a list of which n are not named.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return ", …"
}

func evaluationCheck(in any) (EvaluationCheck, error) {
	out := EvaluationCheck{Weight: 1, Args: map[string]string{}}
	fields, isMap := in.(map[string]any)
	if !isMap {
		return out, fmt.Errorf("must be an object with check, name, args, weight and key")
	}
	for key, value := range fields {
		var ok bool
		switch key {
		case "check":
			out.Check, ok = value.(string)
		case "name":
			out.Name, ok = value.(string)
		case "key":
			out.Key, ok = value.(bool)
		case "weight":
			out.Weight, ok = whole(value)
			ok = ok && out.Weight >= 0 && out.Weight <= maxWeight
		case "args":
			var args map[string]any
			args, ok = value.(map[string]any)
			for name, arg := range args {
				out.Args[name] = fmt.Sprint(arg)
			}
		default:
			return out, fmt.Errorf("%s is not check, name, args, weight or key", key)
		}
		if !ok {
			return out, fmt.Errorf("%s: %v cannot be used", key, value)
		}
	}
	if out.Check == "" {
		return out, fmt.Errorf("check: name a Check")
	}
	if out.Name == "" {
		out.Name = out.Check[strings.LastIndex(out.Check, "/")+1:]
	}
	return out, nil
}

// StepChecks are the checks as a step would name them.
func (e Evaluation) StepChecks() []shipper.StepCheck {
	out := make([]shipper.StepCheck, len(e.Checks))
	for i, c := range e.Checks {
		out[i] = shipper.StepCheck{Check: c.Check, Name: c.Name, Args: c.Args}
	}
	return out
}

// Judge is the score and the result of checks that are all decided: the score is the weight of those that passed of all, in hundredths. It
// fails below Warning, and if a key check did not pass.
func (e Evaluation) Judge(phases map[string]shipper.CheckPhase) (score int, result shipper.Result, message string) {
	good, all, key := 0, 0, ""
	for _, c := range e.Checks {
		all += c.Weight
		switch {
		case phases[c.Name] == shipper.CheckPassed:
			good += c.Weight
		case c.Key && key == "":
			key = c.Name
		}
	}
	score = maxScore
	if all > 0 {
		score = maxScore * good / all
	}
	message = fmt.Sprintf("score %d of %d", score, maxScore)
	switch {
	case key != "":
		return score, shipper.ResultFail, message + ", and key check " + key + " did not pass"
	case score >= e.Pass:
		return score, shipper.ResultPass, message
	case score >= e.Warning:
		return score, shipper.ResultWarning, fmt.Sprintf("%s, and pass needs %d", message, e.Pass)
	}
	return score, shipper.ResultFail, fmt.Sprintf("%s, and warning needs %d", message, e.Warning)
}
