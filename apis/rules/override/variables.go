// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"regexp"
	"strings"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// known are the variables, for messages.
const known = "there are ${cluster.name}, ${cluster.region}, ${cluster.labels['KEY']} and ${release.name}; $${ writes ${ as it stands"

// labelVariable is a variable with the label of a cluster.
var labelVariable = regexp.MustCompile(`^cluster\.labels\['([^']+)'\]$`)

// variables have values in one cluster.
type variables struct {
	release string
	cluster *shipper.Cluster
}

// deep replaces the variables in all texts of a JSON value. Keys of maps stay.
func (v variables) deep(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return v.in(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			replaced, err := v.deep(item)
			if err != nil {
				return nil, err
			}
			out[key] = replaced
		}
		return out, nil
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			replaced, err := v.deep(item)
			if err != nil {
				return nil, err
			}
			out[i] = replaced
		}
		return out, nil
	default:
		return value, nil
	}
}

// in replaces the variables of a text.
func (v variables) in(text string) (string, error) {
	return expand(text, func(name string) (string, error) {
		if name == "release.name" {
			return v.release, nil
		}
		key := labelVariable.FindStringSubmatch(name)
		switch {
		case v.cluster == nil:
			return "", fmt.Errorf("${%s} has no value: the cluster is not known", name)
		case name == "cluster.name":
			return v.cluster.Name, nil
		case name == "cluster.region":
			return v.cluster.Spec.Region, nil
		case key == nil:
			return "", fmt.Errorf("unknown variable ${%s}: %s", name, known)
		}
		value, there := placement.LabelsOf(v.cluster).Lookup(key[1])
		if !there {
			return "", fmt.Errorf("${%s} has no value: Cluster %q has no such label", name, v.cluster.Name)
		}
		return value, nil
	})
}

// expand replaces each ${name} by its value, and $${ by ${.
func expand(text string, value func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		if at > 0 && text[at-1] == '$' {
			out.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		end := strings.IndexByte(text[at:], '}')
		if end < 0 {
			return "", fmt.Errorf("a variable is not closed: %s", known)
		}
		replaced, err := value(text[at+2 : at+end])
		if err != nil {
			return "", err
		}
		out.WriteString(text[:at] + replaced)
		text = text[at+end+1:]
	}
}

// checkVariables returns why the variables of a text are not valid; nil if they are. Of a name only ${release.name} is.
func checkVariables(text string, inName bool) error {
	_, err := expand(text, func(name string) (string, error) {
		switch {
		case name == "release.name":
			return "", nil
		case inName:
			return "", fmt.Errorf("${%s} cannot be part of a name: only ${release.name} can", name)
		case name == "cluster.name", name == "cluster.region", labelVariable.MatchString(name):
			return "", nil
		}
		return "", fmt.Errorf("unknown variable ${%s}: %s", name, known)
	})
	return err
}
