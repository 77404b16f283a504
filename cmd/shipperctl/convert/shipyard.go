// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	// placeholderShipyard is the name of a Shipyard whose file has none.
	placeholderShipyard = "SHIPYARD"
)

// convertedShipyard is a Shipyard that was made of a file of Keptn.
type convertedShipyard struct {
	shipyard *shipper.Shipyard
	reviews  []string
}

// ofKeptn reports whether the document is a file of Keptn. Files of 0.1.x have neither apiVersion nor kind.
func (d document) ofKeptn() bool {
	return file.Is(d.Object) || d.isRemediation()
}

// isRemediation reports whether the document is a remediation.yaml of any version.
func (d document) isRemediation() bool {
	_, old := d.Object["remediations"].([]any)
	return d.GetKind() == "Remediation" && !strings.HasPrefix(d.GetAPIVersion(), shipper.GroupName+"/") ||
		old && d.GetKind() == "" && d.GetAPIVersion() == ""
}

// convertShipyards converts files of Keptn. Two that make the same Shipyard are an error.
func convertShipyards(all []document, used map[int]bool, failed *failures, with settings) []convertedShipyard {
	var out []convertedShipyard
	from := map[string]document{}
	for i, d := range all {
		if !d.ofKeptn() {
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
	switch {
	case d.isRemediation():
		return convertedShipyard{}, fmt.Errorf("%s: remediation files are not supported yet: Shipper does not do the tasks "+
			"get-action and remediation; leave the file out, and let a sequence with the task rollback take a service back", d.at())
	case len(d.text) > maxShipyard:
		return convertedShipyard{}, fmt.Errorf("%s: it has %d KiB: %d are the most for a shipyard", d.at(), len(d.text)>>10,
			maxShipyard>>10)
	}
	read, err := file.Read(d.Object)
	if err != nil {
		return convertedShipyard{}, d.wrong(err)
	}
	out := convertedShipyard{shipyard: &shipper.Shipyard{
		TypeMeta:   metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: kindOfShipyards},
		ObjectMeta: metav1.ObjectMeta{Name: read.Name, Namespace: with.shipyards},
		Spec:       read.Spec,
	}}
	if read.Name == "" {
		out.shipyard.Name = placeholderShipyard
	}
	report := report{object: kindOfShipyards + " " + out.shipyard.Name}
	switch {
	case read.Name == "":
		report.add("metadata.name", "is missing in the file: replace %s by the name of the project", placeholderShipyard)
	case len(validation.IsDNS1123Subdomain(read.Name)) > 0:
		report.add("metadata.name", "%q is no name of an object: use lower-case letters, digits and -", read.Name)
	}
	for _, note := range read.Notes {
		path, what, _ := strings.Cut(note, ": ")
		if what == "" {
			path, what = "spec.stages", note
		}
		report.add(path, "%s", what)
	}
	reviewShipyard(&report, with.shipyards, &read.Spec)
	out.reviews = report.reviews
	return out, nil
}

// unknownStage is a warning about an event that the notes of a file of 0.2 have already.
var unknownStage = regexp.MustCompile(`^\S+: stage ".*" is not in this shipyard `)

// reviewShipyard reports what the webhook would refuse or warn of.
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
}

// wrong is an error about the document, with the lines of keys that are not known.
func (d document) wrong(err error) error {
	if lines := unknownKeys(d.text, d.line); len(lines) > 0 {
		return fmt.Errorf("%s: %s", d.at(), strings.Join(lines, "; "))
	}
	return fmt.Errorf("%s: %w", d.at(), err)
}

// shape has the keys of a map, and the shapes of their values; nil values have any shape. Lists have the shape of their items.
type shape map[string]shape

// The keys of Keptn's files.
var (
	taskShape     = shape{"name": nil, "properties": nil, "triggeredAfter": nil, "when": nil, "timeout": nil}
	triggerShape  = shape{"event": nil, "selector": {"match": nil}}
	sequenceShape = shape{"name": nil, "triggeredOn": triggerShape, "tasks": taskShape}
	headShape     = shape{"version": nil, "apiVersion": nil, "kind": nil, "metadata": {"name": nil}}
	newShape      = extended(headShape, "spec", shape{"stages": {"name": nil, "sequences": sequenceShape}})
	oldShape      = extended(headShape, "stages", shape{
		"name": nil, "deployment_strategy": nil, "test_strategy": nil, "remediation_strategy": nil,
		"approval_strategy": {"pass": nil, "warning": nil},
	})
)

func extended(s shape, key string, value shape) shape {
	out := shape{key: value}
	for k, v := range s {
		out[k] = v
	}
	return out
}

// unknownKeys are the keys of a shipyard that are not known, with their lines. line is that of the text's first line.
func unknownKeys(text []byte, line int) []string {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	of := newShape
	if hasKey(root.Content[0], "stages") {
		of = oldShape
	}
	var out []string
	var walk func(n *yaml.Node, of shape)
	walk = func(n *yaml.Node, of shape) {
		if of == nil {
			return
		}
		switch n.Kind { // an alias is read where its anchor is
		case yaml.SequenceNode:
			for _, item := range n.Content {
				walk(item, of)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				below, known := of[key.Value]
				if !known && key.Value != "<<" {
					out = append(out, "line "+strconv.Itoa(line+key.Line-1)+": unknown key "+strconv.Quote(key.Value))
				}
				walk(n.Content[i+1], below)
			}
		}
	}
	walk(root.Content[0], of)
	return out
}

func hasKey(n *yaml.Node, key string) bool {
	return n.Kind == yaml.MappingNode && slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
}

// errTooLarge is for an input that no person wrote.
var errTooLarge = errors.New("the input has more than 64 MiB: give fewer objects")

// maxInput bounds the input, in bytes.
const maxInput = 64 << 20
