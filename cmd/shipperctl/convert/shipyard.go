// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/shipyard/file"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	kindOfShipyards = "Shipyard"
	// maxShipyard bounds a file of Keptn, in bytes. A Shipyard has 64 KiB of stages at most.
	maxShipyard = 1 << 20
)

// convertedShipyard is what a file of Keptn became. A file that is no shipyard has reviews alone.
type convertedShipyard struct {
	shipyard *shipper.Shipyard
	reviews  []string
}

// ofKeptn reports whether the document is a file of Keptn. Files of 0.1.x have neither apiVersion nor kind.
func (d document) ofKeptn() bool {
	return file.Is(d.Object) || d.besideShipyard() != nil
}

// convertShipyards converts files of Keptn. Two that make the same Shipyard are an error.
func convertShipyards(all []document, used map[int]bool, failed *failures, with settings) []convertedShipyard {
	var out []convertedShipyard
	from := map[string]document{}
	for i, d := range all {
		if !d.ofKeptn() {
			continue
		}
		if beside := d.besideShipyard(); beside != nil {
			used[i] = true
			out = append(out, convertedShipyard{reviews: beside})
			continue
		}
		one, err := shipyardOf(d, with)
		if err != nil {
			failed.add(i, err)
			continue
		}
		name := one.shipyard.Name
		if other, twice := from[name]; twice {
			failed.add(i, fmt.Errorf("%s: %s makes the Shipyard %s, too: rename one", d.at(), other.at(), name))
			continue
		}
		from[name], used[i] = d, true
		out = append(out, one)
	}
	return out
}

// shipyardOf converts a file of Keptn.
func shipyardOf(d document, with settings) (convertedShipyard, error) {
	if len(d.text) > maxShipyard {
		return convertedShipyard{}, fmt.Errorf("%s: it has %d KiB: %d are the most for a shipyard", d.at(), len(d.text)>>10,
			maxShipyard>>10)
	}
	read, err := file.Read(d.Object)
	switch {
	case err != nil:
		return convertedShipyard{}, fmt.Errorf("%s: %w", d.at(), err)
	case read.Name == "" && with.shipyard == "":
		return convertedShipyard{}, fmt.Errorf("%s: this shipyard has no metadata.name: give the name of the project with --name NAME", d.at())
	}
	name := cmp.Or(read.Name, with.shipyard)
	valid := name
	if len(validation.IsDNS1123Subdomain(name))+len(validation.IsValidLabelValue(name)) > 0 {
		valid = cmp.Or(file.ObjectName(name), with.shipyard)
	}
	if valid == "" {
		return convertedShipyard{}, fmt.Errorf("%s: metadata.name: %q cannot be the name of an object: give another one with --name NAME",
			d.at(), name)
	}
	out := convertedShipyard{shipyard: &shipper.Shipyard{
		TypeMeta:   metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: kindOfShipyards},
		ObjectMeta: metav1.ObjectMeta{Name: valid, Namespace: with.shipyards},
		Spec:       read.Spec,
	}}
	report := report{object: kindOfShipyards + " " + valid}
	if valid != name {
		report.add("metadata.name", "%q is %s here: the name has at most 63 lower-case letters, digits, - and .", name, valid)
	}
	for _, note := range read.Notes {
		field := note.Field
		if line := lineOf(d.text, field); line > 0 {
			field += fmt.Sprintf(" (line %d)", d.line+line-1)
		}
		report.add(field, "%s", note.Text)
	}
	reviewShipyard(&report, with.shipyards, &read.Spec)
	out.reviews = report.reviews
	return out, nil
}

// unknownStage is a warning about an event that the notes of a file of 0.2 have already.
var unknownStage = regexp.MustCompile(`^\S+: stage ".*" is not in this shipyard `)

// reviewShipyard reports what the webhook would refuse or warn of, and what has another effect than in Keptn.
func reviewShipyard(r *report, namespace string, spec *shipper.ShipyardSpec) {
	for _, err := range rules.Validate(namespace, spec, field.NewPath("spec")) {
		r.add(err.Field, "is refused: %s", err.ErrorBody())
	}
	for _, warning := range rules.Warnings(spec) {
		if unknownStage.MatchString(warning) {
			continue
		}
		path, what, _ := strings.Cut(warning, ": ")
		r.add("spec."+path, "%s", what)
	}
	var tests []string
	for i := range spec.Stages {
		if len(spec.Stages[i].Sequences) == 0 {
			r.add(fmt.Sprintf("spec.stages[%d]", i), "stage %s has no sequences: its runs are of the sequence evaluation, which passes, and "+
				"nothing is measured; declare that sequence with a task evaluation that names Checks", spec.Stages[i].Name)
		}
		for j := range spec.Stages[i].Sequences {
			for k, task := range spec.Stages[i].Sequences[j].Tasks {
				if _, job := task.Properties["job"]; task.Name == rules.TaskTest && !job {
					tests = append(tests, fmt.Sprintf("spec.stages[%d].sequences[%d].tasks[%d]", i, j, k))
				}
			}
		}
	}
	if len(tests) > 0 {
		same := ""
		if len(tests) > 1 {
			same = fmt.Sprintf(" (the same for %d more: %s)", len(tests)-1, firstNames(tests[1:]))
		}
		r.add(tests[0], "task test runs the tests of the chart here, and teststrategy has no effect: add tests to the chart, or a Job as "+
			"properties.job%s", same)
	}
}

// maxListed bounds the names in a message.
const maxListed = 5

// firstNames has the first names of a list.
func firstNames(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// lineOf is the line of a field in a YAML document, from 1; 0 if it has none.
func lineOf(text []byte, field string) int {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || len(root.Content) == 0 {
		return 0
	}
	return lineBelow(root.Content[0], 0, field)
}

// lineBelow follows a path from a node, whose own line is the one given.
func lineBelow(n *yaml.Node, line int, path string) int {
	if n.Kind == yaml.AliasNode {
		return line
	}
	if path == "" {
		return line
	}
	if n.Kind == yaml.SequenceNode {
		index, rest, is := strings.Cut(strings.TrimPrefix(path, "["), "]")
		at, err := strconv.Atoi(index)
		if !is || err != nil || at < 0 || at >= len(n.Content) {
			return 0
		}
		return lineBelow(n.Content[at], n.Content[at].Line, rest)
	}
	path = strings.TrimPrefix(path, ".")
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		rest, is := strings.CutPrefix(path, key.Value)
		if is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			if found := lineBelow(n.Content[i+1], key.Line, rest); found > 0 {
				return found
			}
		}
	}
	return 0
}

// errTooLarge is for an input that no person wrote.
var errTooLarge = errors.New("the input has more than 64 MiB: give fewer objects")

// maxInput bounds the input, in bytes.
const maxInput = 64 << 20
