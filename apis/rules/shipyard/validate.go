// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of a Shipyard.
const (
	MaxStages     = 30
	MaxSpec       = 64 << 10
	MaxProperties = 16 << 10
)

// Validate refuses a spec of a Shipyard in a namespace that could not be run. Its schema holds without a webhook; these are the rules that
// a schema cannot afford.
func Validate(namespace string, spec *shipper.ShipyardSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("stages")
	if raw, err := json.Marshal(spec.Stages); err != nil || len(raw) > MaxSpec {
		errs = append(errs, field.TooLong(at, "", MaxSpec))
	}
	applications := map[string]string{}
	for i := range spec.Stages {
		stage := &spec.Stages[i]
		for j := range stage.Sequences {
			errs = append(errs, validateSequence(&stage.Sequences[j], at.Index(i).Child("sequences").Index(j))...)
		}
		errs = append(errs, validateRequires(spec, stage, at.Index(i).Child("requires"))...)
		errs = append(errs, validateApplication(stage, at.Index(i).Child("application"))...)
		if !deploys(stage) {
			continue
		}
		name := cmp.Or(stage.Namespace, namespace) + "/" + applicationPattern(stage)
		if other, twice := applications[name]; twice {
			errs = append(errs, field.Invalid(at.Index(i), stage.Name, fmt.Sprintf(
				"deploys to the Application of stage %s: give it another namespace or application", other)))
		}
		applications[name] = stage.Name
	}
	return append(errs, circles(spec, at)...)
}

func validateSequence(sequence *shipper.Sequence, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(sequence.Tasks) == 0 {
		errs = append(errs, field.Required(path.Child("tasks"), "sequence "+sequence.Name+" has no tasks")) // KS19
	}
	for i := range sequence.TriggeredOn {
		errs = append(errs, validateTrigger(&sequence.TriggeredOn[i], path.Child("triggeredOn").Index(i))...)
	}
	for i := range sequence.Tasks {
		errs = append(errs, validateTask(&sequence.Tasks[i], path.Child("tasks").Index(i))...)
	}
	return append(errs, within(sequence.Timeout, path.Child("timeout"), time.Minute, 720*time.Hour)...)
}

// within validates a duration that may be absent; the schema has its form.
func within(d shipper.Duration, path *field.Path, least, most time.Duration) field.ErrorList {
	if d == "" || d.Value() >= least && d.Value() <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d, fmt.Sprintf("from %s to %s", short(least), short(most)))}
}

// short is a duration without what is 0.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// taskKeys are what can follow the name of a task in match.
var taskKeys = []string{"result", "status"}

func validateTrigger(t *shipper.Trigger, path *field.Path) field.ErrorList {
	if t.Selector == nil {
		return nil
	}
	at := path.Child("selector", "match")
	const remedy = "leave selector out for pass, or name result, status, service, TASK.result or TASK.status"
	if len(t.Selector.Match) == 0 { // KS2
		return field.ErrorList{field.Required(at, "would never match: "+remedy)}
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(t.Selector.Match)) {
		value := t.Selector.Match[key]
		what := key
		if name, of, both := strings.Cut(key, "."); both && name != "" && slices.Contains(taskKeys, of) {
			what = of
		}
		switch what {
		case "service":
		case "result":
			errs = append(errs, oneOf(at.Key(key), value, shipper.ResultPass, shipper.ResultWarning, shipper.ResultFail)...)
		case "status":
			errs = append(errs, oneOf(at.Key(key), value, shipper.CompletionSucceeded, shipper.CompletionErrored, shipper.CompletionUnknown,
				shipper.CompletionAborted)...)
		default:
			errs = append(errs, field.Invalid(at.Key(key), key, "cannot be matched: "+remedy))
		}
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value string, known ...T) field.ErrorList {
	if slices.Contains(known, T(value)) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, T(value), known)}
}

func validateTask(task *shipper.Task, path *field.Path) field.ErrorList {
	at := path.Child("properties")
	var errs field.ErrorList
	if Reserved(task.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), task.Name, "is a key of all events: the data of the task would have no place"))
	}
	if !IsNative(task.Name) && IsNative(strings.ToLower(task.Name)) {
		why := fmt.Sprintf("Shipper does not do it: did you mean %q?", strings.ToLower(task.Name))
		errs = append(errs, field.Invalid(path.Child("name"), task.Name, why))
	}
	if raw, err := json.Marshal(task.Properties); err != nil || len(raw) > MaxProperties {
		errs = append(errs, field.TooLong(at, "", MaxProperties))
	} else {
		errs = append(errs, unknownProperties(task, at)...)
	}
	errs = append(errs, within(task.TriggeredAfter, path.Child("triggeredAfter"), 0, 168*time.Hour)...)
	errs = append(errs, within(task.Timeout, path.Child("timeout"), time.Second, 168*time.Hour)...)
	switch task.Name {
	case TaskApproval:
		if _, err := ConsentOf(task.Properties); err != nil {
			name, why, _ := strings.Cut(err.Error(), ": ")
			errs = append(errs, field.Invalid(at.Child(name), task.Properties[name], why))
		}
	case TaskEvaluation, TaskEvaluate:
		if _, err := EvaluationOf(task.Properties); err != nil {
			name, why, _ := strings.Cut(err.Error(), ": ")
			errs = append(errs, field.Invalid(at.Child(name), task.Properties[name], why))
		}
	case TaskDeployment:
		errs = append(errs, property(task, at, "deploymentstrategy", "direct", "blue_green", "blue_green_service", "user_managed")...)
		errs = append(errs, property(task, at, "to", "first", "last")...)
	case TaskRollback:
		errs = append(errs, property(task, at, "strategy", "Immediate", "Steps")...)
	case TaskTest:
		errs = append(errs, validateJob(task, at.Child("job"))...)
	}
	return errs
}

// property validates a property that may be absent.
func property(task *shipper.Task, path *field.Path, name string, known ...string) field.ErrorList {
	value, given := task.Properties[name]
	if !given {
		return nil
	}
	if text, isText := value.(string); isText {
		return oneOf(path.Child(name), text, known...)
	}
	return field.ErrorList{field.Invalid(path.Child(name), value, "must be a text: "+strings.Join(known, ", "))}
}

func validateRequires(spec *shipper.ShipyardSpec, stage *shipper.Stage, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, required := range stage.Requires {
		at := slices.IndexFunc(spec.Stages, func(s shipper.Stage) bool { return s.Name == required.Stage })
		switch {
		case required.Stage == stage.Name:
			errs = append(errs, field.Invalid(path.Index(i).Child("stage"), required.Stage, "a stage cannot require itself"))
		case at < 0:
			errs = append(errs, field.NotFound(path.Index(i).Child("stage"), required.Stage))
		case required.Sequence != "" && !slices.ContainsFunc(spec.Stages[at].Sequences,
			func(s shipper.Sequence) bool { return s.Name == required.Sequence }):
			errs = append(errs, field.NotFound(path.Index(i).Child("sequence"), required.Sequence))
		}
	}
	return errs
}

// circles refuses stages that require each other: no version could ever meet that.
func circles(spec *shipper.ShipyardSpec, path *field.Path) field.ErrorList {
	of := map[string][]string{}
	for i := range spec.Stages {
		for _, required := range spec.Stages[i].Requires {
			of[spec.Stages[i].Name] = append(of[spec.Stages[i].Name], required.Stage)
		}
	}
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		for _, next := range of[from] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				if reaches(next, to, seen) {
					return true
				}
			}
		}
		return false
	}
	for i := range spec.Stages {
		name := spec.Stages[i].Name
		if !slices.Contains(of[name], name) && reaches(name, name, map[string]bool{}) {
			return field.ErrorList{field.Invalid(path.Index(i).Child("requires"), name, "is required by a stage that it requires")}
		}
	}
	return nil
}

// placeholder is what is replaced in the name of an Application.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

var placeholders = []string{"{service}", "{stage}", "{shipyard}"}

func validateApplication(stage *shipper.Stage, path *field.Path) field.ErrorList {
	for _, found := range placeholder.FindAllString(stage.Application, -1) {
		if !slices.Contains(placeholders, found) {
			return field.ErrorList{field.Invalid(path, stage.Application, found+" is not "+strings.Join(placeholders, ", "))}
		}
	}
	switch n := strings.Count(stage.Application, "{service}"); {
	case stage.Application != "" && n == 0:
		return field.ErrorList{field.Invalid(path, stage.Application, "has no {service}: all services would be one Application")}
	case n > 1:
		return field.ErrorList{field.Invalid(path, stage.Application, "has {service} twice: leave one out")}
	}
	if name := placeholder.ReplaceAllString(stage.Application, "x"); name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(path, stage.Application, "makes no names of objects: use lower-case letters, digits, - and .")}
	}
	return nil
}

// applicationPattern is the pattern of the names of a stage's Applications.
func applicationPattern(stage *shipper.Stage) string {
	switch {
	case stage.Application != "":
		return strings.ReplaceAll(stage.Application, "{stage}", stage.Name)
	case stage.Namespace != "":
		return "{service}"
	}
	return "{service}-" + stage.Name
}

// ApplicationOf is the name of the Application of a service in a stage.
func ApplicationOf(stage *shipper.Stage, shipyard, service string) string {
	return strings.NewReplacer("{service}", service, "{shipyard}", shipyard).Replace(applicationPattern(stage))
}

// deploys reports whether runs of a stage write an Application.
func deploys(stage *shipper.Stage) bool {
	return slices.ContainsFunc(stage.Sequences, func(s shipper.Sequence) bool {
		return slices.ContainsFunc(s.Tasks, func(t shipper.Task) bool { return t.Name == TaskDeployment })
	})
}

// Warnings name what is admitted and probably not meant.
func Warnings(spec *shipper.ShipyardSpec) []string {
	var names, out []string
	for i := range spec.Stages {
		names = append(names, spec.Stages[i].Name)
	}
	for i := range spec.Stages {
		if i > 0 && byHand(&spec.Stages[i]) {
			out = append(out, fmt.Sprintf("stages[%d]: no event starts a run in stage %s: it is started by hand", i, names[i]))
		}
		for j := range spec.Stages[i].Sequences {
			sequence, at := &spec.Stages[i].Sequences[j], fmt.Sprintf("stages[%d].sequences[%d]", i, j)
			for k, t := range sequence.TriggeredOn {
				of, isEnd := strings.CutSuffix(t.Event, finished)
				name, what, named := strings.Cut(of, ".")
				switch {
				case !isEnd || !named:
					out = append(out, fmt.Sprintf("%s.triggeredOn[%d]: event %s is not the end of a sequence, and Shipper receives no other events "+
						"yet: nothing triggers this", at, k, t.Event))
				case !slices.Contains(names, name):
					out = append(out, fmt.Sprintf("%s.triggeredOn[%d]: stage %q is not in this shipyard (%s), and nothing in it triggers this", at, k,
						name, strings.Join(names, ", ")))
				case !ends(&spec.Stages[slices.Index(names, name)], what):
					out = append(out, fmt.Sprintf("%s.triggeredOn[%d]: stage %s has no sequence and no task %q: nothing triggers this", at, k, name, what))
				}
			}
			for k := range sequence.Tasks {
				if task := sequence.Tasks[k].Name; !IsNative(task) {
					why := fmt.Sprintf("%s.tasks[%d]: Shipper does not do task %q: a run fails there", at, k, task)
					if nearest := placement.Nearest(task, slices.Values(Native)); nearest != "" {
						why += fmt.Sprintf("; did you mean %q?", nearest)
					}
					out = append(out, why)
				}
			}
		}
	}
	return append(out, warnUnmeasured(spec)...)
}

// byHand reports whether a stage has sequences, and none that an event triggers.
func byHand(stage *shipper.Stage) bool {
	return len(stage.Sequences) > 0 &&
		!slices.ContainsFunc(stage.Sequences, func(s shipper.Sequence) bool { return len(s.TriggeredOn) > 0 })
}

// ends reports whether a stage has a sequence or a task of a name.
func ends(stage *shipper.Stage, name string) bool {
	return name == TaskEvaluation || slices.ContainsFunc(stage.Sequences, func(s shipper.Sequence) bool {
		return s.Name == name || slices.ContainsFunc(s.Tasks, func(t shipper.Task) bool { return t.Name == name })
	})
}
