// SPDX-License-Identifier: Apache-2.0

// Package file reads Keptn's shipyard files: those of the specification 0.2, and of 0.1.x, which it migrates (K1, K20).
package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Shipyard is what a file becomes. The API server admits it, unless a note says otherwise.
type Shipyard struct {
	// Name is metadata.name; empty if the file has none.
	Name string
	Spec shipper.ShipyardSpec
	// Notes say what was changed or left out, and why, for a person to review.
	Notes []Note
}

// Note is about one field of the file.
type Note struct {
	// Field is the path of the field, such as spec.stages[0].name.
	Field, Text string
}

// group is what apiVersion has before the version.
const group = "spec.keptn.sh/"

// Is reports whether an object is a shipyard file: one of the specification, or the stages alone of 0.1.x.
func Is(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	_, stages := object["stages"].([]any)
	return kind == "Shipyard" && !strings.HasPrefix(apiVersion, shipper.GroupName+"/") || kind == "" && apiVersion == "" && stages
}

// Read reads a file that was parsed. What a Shipyard cannot have is changed or left out, with a note.
func Read(object map[string]any) (Shipyard, error) {
	version, err := versionOf(object)
	if err != nil {
		return Shipyard{}, err
	}
	r := &reader{}
	path, spec := "stages", object
	known := []string{"version", "apiVersion", "kind", "metadata"}
	if raw, given := object["spec"]; given {
		path = "spec.stages"
		r.object("", object, append(known, "spec")...)
		spec = r.object("spec", raw, "stages")
	} else {
		r.object("", object, append(known, "stages")...)
	}
	stages := r.list(path, spec["stages"])
	out := Shipyard{Name: r.text("metadata.name", r.object("metadata", object["metadata"], "name")["name"])}
	if isOld(version, path, stages) {
		out.Spec.Stages = r.migrate(path, stages)
	} else {
		out.Spec.Stages = r.stages(path, stages)
	}
	if len(out.Spec.Stages) == 0 {
		return Shipyard{}, errors.New(path + ": a shipyard has at least one stage")
	}
	r.admit(&out.Spec)
	r.unknownStages(&out.Spec)
	out.Notes = r.notes
	return out, nil
}

// versionOf is the version of the specification; empty for stages without one, which is 0.1.x.
func versionOf(object map[string]any) (string, error) {
	version, _ := object["version"].(string)
	if apiVersion, given := object["apiVersion"].(string); given {
		version = apiVersion
	}
	version = strings.TrimPrefix(version, group)
	switch {
	case version == "" && object["spec"] != nil:
		return "", errors.New("version: write version: 0.2.0, or apiVersion: " + group + "0.2.0")
	case version == "", strings.HasPrefix(version, "0.1."), strings.HasPrefix(version, "0.2."), version == "0.2":
		return version, nil
	}
	return "", fmt.Errorf("version %s is not known: 0.1.x and 0.2.x are", version)
}

// isOld reports whether stages are those of 0.1.x. Their form decides, since files with the version of the other form exist.
func isOld(version, path string, stages []any) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(stages, func(raw any) bool {
			stage, _ := raw.(map[string]any)
			_, given := stage[key]
			return given
		})
	}
	switch {
	case has("sequences"):
		return false
	case strings.HasPrefix(version, "0.2"):
		return path == "stages" && has("deployment_strategy")
	}
	return true
}

// unknownStages notes events of stages that the file does not have: nothing triggers these sequences.
func (r *reader) unknownStages(spec *shipper.ShipyardSpec) {
	var names []string
	for _, stage := range spec.Stages {
		names = append(names, stage.Name)
	}
	for i, stage := range spec.Stages {
		for j, sequence := range stage.Sequences {
			for k, t := range sequence.TriggeredOn {
				of, isEnd := strings.CutSuffix(t.Event, finished)
				name, _, named := strings.Cut(of, ".")
				if isEnd && named && !slices.Contains(names, name) {
					r.note(fmt.Sprintf("spec.stages[%d].sequences[%d].triggeredOn[%d]", i, j, k),
						"event %s is of a stage that this file does not have (%s): nothing triggers it", t.Event, strings.Join(names, ", "))
				}
			}
		}
	}
}
