// SPDX-License-Identifier: Apache-2.0

// Package file reads Keptn's shipyard files: those of the specification 0.2, and of 0.1.x, which it migrates (K1, K20).
package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Shipyard is what a file becomes.
type Shipyard struct {
	// Name is metadata.name; empty if the file has none.
	Name string
	Spec shipper.ShipyardSpec
	// Notes say what was changed, and why, for a person to review.
	Notes []string
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

// Read reads a file that was parsed. Unknown fields are errors.
func Read(object map[string]any) (Shipyard, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return Shipyard{}, fmt.Errorf("encoding the shipyard: %w", err)
	}
	version, err := versionOf(object)
	if err != nil {
		return Shipyard{}, err
	}
	if strings.HasPrefix(version, "0.1.") || version == "" {
		var old older
		if err := strict(raw, &old); err != nil {
			return Shipyard{}, err
		}
		return old.migrate()
	}
	var now newer
	if err := strict(raw, &now); err != nil {
		return Shipyard{}, err
	}
	return now.read()
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

func strict(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("reading the shipyard: %w", err)
	}
	return nil
}

// newer is a file of the specification 0.2.
type newer struct {
	Version    string   `json:"version"`
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		Stages []struct {
			Name      string `json:"name"`
			Sequences []struct {
				Name        string         `json:"name"`
				TriggeredOn []trigger      `json:"triggeredOn"`
				Tasks       []shipper.Task `json:"tasks"`
			} `json:"sequences"`
		} `json:"stages"`
	} `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

// trigger is an event with a selector, or the name of the event alone, as in the specification's second example.
type trigger struct {
	shipper.Trigger

	bare bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *trigger) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &t.Event) == nil {
		t.bare = true
		return nil
	}
	return strict(raw, &t.Trigger)
}

func (f *newer) read() (Shipyard, error) {
	out := Shipyard{Name: f.Metadata.Name}
	for _, stage := range f.Spec.Stages {
		s := shipper.Stage{Name: stage.Name}
		for _, sequence := range stage.Sequences {
			q := shipper.Sequence{Name: sequence.Name, Tasks: sequence.Tasks}
			for i, t := range sequence.TriggeredOn {
				if t.bare {
					out.note("%s.%s: triggeredOn[%d] was the text %s, and is an event now", stage.Name, sequence.Name, i, t.Event)
				}
				q.TriggeredOn = append(q.TriggeredOn, t.Trigger)
			}
			s.Sequences = append(s.Sequences, q)
		}
		out.Spec.Stages = append(out.Spec.Stages, s)
	}
	if len(out.Spec.Stages) == 0 {
		return Shipyard{}, errors.New("spec.stages: a shipyard has at least one stage")
	}
	out.unknownStages()
	return out, nil
}

// unknownStages notes events of stages that the file does not have: nothing triggers these sequences.
func (s *Shipyard) unknownStages() {
	var names []string
	for _, stage := range s.Spec.Stages {
		names = append(names, stage.Name)
	}
	for _, stage := range s.Spec.Stages {
		for _, sequence := range stage.Sequences {
			for _, t := range sequence.TriggeredOn {
				of, isEnd := strings.CutSuffix(t.Event, ".finished")
				name, _, named := strings.Cut(of, ".")
				if isEnd && named && !slices.Contains(names, name) {
					s.note("%s.%s: event %s is of a stage that this file does not have (%s): nothing triggers it", stage.Name, sequence.Name, t.Event,
						strings.Join(names, ", "))
				}
			}
		}
	}
}

func (s *Shipyard) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}
