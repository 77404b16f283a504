// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// reader reads parsed YAML field by field, and notes what is not read.
type reader struct{ notes []Note }

func (r *reader) note(field, format string, args ...any) {
	r.notes = append(r.notes, Note{Field: field, Text: fmt.Sprintf(format, args...)})
}

// left notes a value that has not the type that a field takes.
func (r *reader) left(field, wanted string) { r.note(field, "must be %s, and is left out", wanted) }

// oldKeys are those of stages of 0.1.x, with what a sequence of 0.2 has in their place.
var oldKeys = map[string]string{
	"approval_strategy": "approval", "deployment_strategy": "deployment", "remediation_strategy": "remediation", "test_strategy": "test",
}

// object is a map, whose keys are noted unless they are known; nil for anything else.
func (r *reader) object(field string, raw any, known ...string) map[string]any {
	of, is := raw.(map[string]any)
	if !is {
		if raw != nil {
			r.left(field, "an object")
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if slices.Contains(known, key) {
			continue
		}
		at := strings.TrimPrefix(field+"."+key, ".")
		switch task, old := oldKeys[key]; {
		case old:
			r.note(at, "is a key of shipyards of 0.1, which has no effect in 0.2, and is left out: add the task %s to a sequence if it is meant",
				task)
		case placement.Nearest(key, slices.Values(known)) != "":
			r.note(at, "is no key of a shipyard, and is left out; did you mean %q?", placement.Nearest(key, slices.Values(known)))
		default:
			r.note(at, "is no key of a shipyard, and is left out: keep it in a comment or an annotation of the Shipyard")
		}
	}
	return of
}

// list is a list, or nil with a note.
func (r *reader) list(field string, raw any) []any {
	of, is := raw.([]any)
	if !is && raw != nil {
		r.left(field, "a list")
	}
	return of
}

// text is a text; numbers, true and false are the texts that they were written as.
func (r *reader) text(field string, raw any) string {
	switch value := raw.(type) {
	case nil:
		return ""
	case string:
		return value
	case bool, int, int64, float64:
		return fmt.Sprint(value)
	}
	r.left(field, "a text")
	return ""
}

func (r *reader) stages(path string, all []any) []shipper.Stage {
	var out []shipper.Stage
	for i, raw := range all {
		at := path + "[" + strconv.Itoa(i) + "]"
		of := r.object(at, raw, "name", "sequences")
		if of == nil {
			continue
		}
		stage := shipper.Stage{Name: r.text(at+".name", of["name"])}
		for j, raw := range r.list(at+".sequences", of["sequences"]) {
			if one := r.sequence(at+".sequences["+strconv.Itoa(j)+"]", raw); one != nil {
				stage.Sequences = append(stage.Sequences, *one)
			}
		}
		out = append(out, stage)
	}
	return out
}

func (r *reader) sequence(at string, raw any) *shipper.Sequence {
	of := r.object(at, raw, "name", "triggeredOn", "tasks")
	if of == nil {
		return nil
	}
	out := &shipper.Sequence{Name: r.text(at+".name", of["name"])}
	for i, raw := range r.list(at+".triggeredOn", of["triggeredOn"]) {
		if t := r.trigger(fmt.Sprintf("%s.triggeredOn[%d]", at, i), raw); t != nil {
			out.TriggeredOn = append(out.TriggeredOn, *t)
		}
	}
	for i, raw := range r.list(at+".tasks", of["tasks"]) {
		if t := r.task(fmt.Sprintf("%s.tasks[%d]", at, i), raw); t != nil {
			out.Tasks = append(out.Tasks, *t)
		}
	}
	return out
}

// trigger is an event with a selector, or the name of the event alone, as in the specification's second example.
func (r *reader) trigger(at string, raw any) *shipper.Trigger {
	if event, bare := raw.(string); bare {
		r.note(at, "was the text %s, and is an event now", event)
		return &shipper.Trigger{Event: event}
	}
	of := r.object(at, raw, "event", "selector")
	out := &shipper.Trigger{Event: r.text(at+".event", of["event"])}
	if out.Event == "" {
		r.note(at, "names no event, and is left out")
		return nil
	}
	if selector, given := of["selector"]; given && selector != nil {
		out.Selector = &shipper.TriggerSelector{}
		match := r.object(at+".selector", selector, "match")["match"]
		if of, is := match.(map[string]any); is {
			out.Selector.Match = map[string]string{}
			for _, key := range slices.Sorted(maps.Keys(of)) {
				out.Selector.Match[key] = r.text(at+".selector.match."+key, of[key])
			}
		} else if match != nil {
			r.left(at+".selector.match", "an object")
		}
	}
	return out
}

func (r *reader) task(at string, raw any) *shipper.Task {
	if name, bare := raw.(string); bare {
		r.note(at, "was the text %s, and is a task now", name)
		raw = map[string]any{"name": name}
	}
	of := r.object(at, raw, "name", "properties", "triggeredAfter", "when", "timeout")
	out := &shipper.Task{Name: r.text(at+".name", of["name"])}
	if out.Name == "" {
		r.note(at, "has no name, and is left out")
		return nil
	}
	out.Properties = r.properties(at+".properties", of["properties"])
	out.TriggeredAfter = r.duration(at+".triggeredAfter", of["triggeredAfter"])
	out.Timeout = r.duration(at+".timeout", of["timeout"])
	switch when := shipper.TaskCondition(r.text(at+".when", of["when"])); when {
	case "", shipper.TaskWhenPassed, shipper.TaskAlways, shipper.TaskWhenFailed:
		out.When = when
	default:
		r.left(at+".when", "Passed, Always or Failed")
	}
	return out
}

// properties are those of a task. A list of objects, which some files have, is the object of all their keys.
func (r *reader) properties(at string, raw any) shipper.FreeForm {
	if all, is := raw.([]any); is {
		merged := map[string]any{}
		for _, one := range all {
			of, is := one.(map[string]any)
			if !is {
				r.left(at, "an object")
				return nil
			}
			maps.Copy(merged, of)
		}
		r.note(at, "was a list of objects, and is one object now")
		raw = merged
	}
	of, is := raw.(map[string]any)
	if !is && raw != nil {
		r.left(at, "an object")
	}
	return of
}

// maxDuration bounds the times of a task, and durationForm is what the schema takes.
const maxDuration = 168 * time.Hour

var durationForm = regexp.MustCompile(`^([0-9]{1,5}(h|m|s)){1,4}$`)

func (r *reader) duration(at string, raw any) shipper.Duration {
	text := strings.TrimSpace(r.text(at, raw))
	value, err := time.ParseDuration(text)
	switch {
	case text == "":
		return ""
	case err != nil || value < 0:
		r.note(at, "%q is no duration such as 10m, and is left out: nothing is waited for", text)
		return ""
	case value > maxDuration:
		r.note(at, "is %s here, the most that a task may have, in place of %s", "168h", text)
		return "168h"
	case !durationForm.MatchString(text):
		whole := value.Round(time.Second)
		if whole != value {
			r.note(at, "is %s here, in whole seconds, in place of %s", whole, text)
		}
		return shipper.Duration(whole.String())
	}
	return shipper.Duration(text)
}
