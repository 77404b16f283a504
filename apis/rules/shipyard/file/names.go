// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxName bounds the names of stages, sequences and tasks.
const maxName = 63

var (
	notInStages = regexp.MustCompile(`[^a-z0-9]+`)
	notInNames  = regexp.MustCompile(`[^-_A-Za-z0-9]+`)
	// subresources cannot be stages: the rights on a stage are those on a subresource of its name.
	subresources = []string{"status", "scale", "finalizers"}
)

// ObjectName is a name that an object of Kubernetes and a label may have, made of another one; empty if nothing is left of it.
func ObjectName(name string) string { return stageName(name) }

func stageName(name string) string {
	name = strings.Trim(notInStages.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(name[:min(len(name), maxName)], "-")
}

// sequenceName is also that of tasks.
func sequenceName(name string) string {
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-_")
	return strings.Trim(name[:min(len(name), maxName)], "-_")
}

func taskName(name string) string {
	out := sequenceName(name)
	switch lower := strings.ToLower(out); {
	case rules.IsNative(lower):
		return lower
	case rules.Reserved(out):
		return out + "-task"
	case out == "":
		return "task"
	}
	return out
}

// unique is a name that is not in use: with a number if need be.
func unique(name string, used map[string]bool) string {
	out := name
	for n := 2; used[out]; n++ {
		suffix := "-" + strconv.Itoa(n)
		out = strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-_") + suffix
	}
	used[out] = true
	return out
}

// renamed are the new names of stages by the old ones, and of the sequences of each stage, by its old name.
type renamed struct {
	stages    map[string]string
	sequences map[string]map[string]string
}

// names makes the names of stages, sequences and tasks valid and unique, and changes the events and selectors that have them.
func (r *reader) names(spec *shipper.ShipyardSpec) {
	r.mergeStages(spec)
	to := renamed{map[string]string{}, map[string]map[string]string{}}
	used := map[string]bool{}
	for _, stage := range spec.Stages { // a name that is valid already stays
		if valid := stageName(stage.Name); valid == stage.Name && valid != "" && !slices.Contains(subresources, valid) {
			to.stages[stage.Name], used[valid] = valid, true
		}
	}
	for i := range spec.Stages {
		stage := &spec.Stages[i]
		if _, stays := to.stages[stage.Name]; !stays {
			name := stageName(stage.Name)
			if name == "" || slices.Contains(subresources, name) {
				name = strings.TrimPrefix(name+"-stage", "-")
			}
			to.stages[stage.Name] = unique(name, used)
			r.renames(fmt.Sprintf("spec.stages[%d].name", i), stage.Name, to.stages[stage.Name],
				"a stage has at most 63 lower-case letters, digits and -, and is not named status, scale or finalizers")
		}
		to.sequences[stage.Name] = r.sequenceNames(i, stage)
	}
	for i := range spec.Stages {
		spec.Stages[i].Name = to.stages[spec.Stages[i].Name]
	}
	eachTask(spec, func(at string, task *shipper.Task) {
		if name := taskName(task.Name); name != task.Name {
			why := "a task has at most 63 letters, digits, - and _"
			switch {
			case rules.IsNative(name):
				why = "the task of Shipper has this name"
			case rules.Reserved(task.Name):
				why = "the name is a key of all events"
			}
			r.renames(at+".name", task.Name, name, why)
			task.Name = name
		}
	})
	eachSequence(spec, func(_ string, sequence *shipper.Sequence) { to.events(sequence) })
}

func (r *reader) renames(at, from, to, why string) {
	if from == "" {
		r.note(at, "is missing: it is %s here", to)
		return
	}
	r.note(at, "%q is %s here: %s", from, to, why)
}

// mergeStages gives the sequences of a stage that is in the file twice to the first one.
func (r *reader) mergeStages(spec *shipper.ShipyardSpec) {
	var out []shipper.Stage
	for i, stage := range spec.Stages {
		at := slices.IndexFunc(out, func(s shipper.Stage) bool { return s.Name == stage.Name && stage.Name != "" })
		if at < 0 {
			out = append(out, stage)
			continue
		}
		r.note(fmt.Sprintf("spec.stages[%d].name", i), "stage %s is in the file twice: the first one has the sequences of both", stage.Name)
		out[at].Sequences = append(out[at].Sequences, stage.Sequences...)
	}
	spec.Stages = out
}

// sequenceNames makes the names of the sequences of a stage valid, and removes the later of two with one name, which Keptn never starts.
func (r *reader) sequenceNames(i int, stage *shipper.Stage) map[string]string {
	to, used := map[string]string{}, map[string]bool{}
	var out []shipper.Sequence
	for j, sequence := range stage.Sequences {
		at := fmt.Sprintf("spec.stages[%d].sequences[%d].name", i, j)
		if _, twice := to[sequence.Name]; twice && sequence.Name != "" {
			r.note(at, "stage %s has sequence %s twice: the second one is left out", stage.Name, sequence.Name)
			continue
		}
		name := sequenceName(sequence.Name)
		if name == "" {
			name = "sequence"
		}
		name = unique(name, used)
		if name != sequence.Name {
			r.renames(at, sequence.Name, name, "a sequence has at most 63 letters, digits, - and _, and no other of the stage has its name")
		}
		to[sequence.Name], sequence.Name = name, name
		out = append(out, sequence)
	}
	stage.Sequences = out
	return to
}

// events changes the events and selectors of a sequence as their names were changed.
func (to renamed) events(sequence *shipper.Sequence) {
	stages := slices.SortedFunc(maps.Keys(to.stages), func(a, b string) int { return len(b) - len(a) }) // a name may have a dot
	for i := range sequence.TriggeredOn {
		t := &sequence.TriggeredOn[i]
		of, isEnd := strings.CutSuffix(t.Event, finished)
		for _, stage := range stages {
			what, its := strings.CutPrefix(of, stage+".")
			if !isEnd || !its || stage == "" {
				continue
			}
			name, isSequence := to.sequences[stage][what]
			if !isSequence {
				name = taskName(what)
			}
			t.Event = to.stages[stage] + "." + name + finished
			break
		}
		if t.Selector == nil {
			continue
		}
		match := map[string]string{}
		for key, value := range t.Selector.Match {
			if at := strings.LastIndex(key, "."); at > 0 {
				key = taskName(key[:at]) + key[at:]
			}
			match[key] = value
		}
		t.Selector.Match = match
	}
}
