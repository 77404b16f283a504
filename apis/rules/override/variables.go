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
const known = "there are ${cluster.name}, ${cluster.region}, ${cluster.labels['KEY']}, ${cluster.properties['NAME']} and " +
	"${release.name}; $${ writes ${ as it stands"

// mapVariable is a variable with a label or a property of a cluster.
var mapVariable = regexp.MustCompile(`^cluster\.(labels|properties)\['([^']+)'\]$`)

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
		of := mapVariable.FindStringSubmatch(name)
		switch {
		case v.cluster == nil:
			return "", fmt.Errorf("${%s} has no value: the cluster is not known", name)
		case name == "cluster.name":
			return v.cluster.Name, nil
		case name == "cluster.region":
			return v.cluster.Spec.Region, nil
		case of == nil:
			return "", fmt.Errorf("unknown variable ${%s}: %s", name, known)
		}
		value, there := placement.LabelsOf(v.cluster).Lookup(of[2])
		kind := "label"
		if of[1] == "properties" {
			value, there = placement.DeclaredProperty(v.cluster, of[2])
			kind = "property"
		}
		if !there {
			return "", fmt.Errorf("${%s} has no value: Cluster %q has no such %s", name, v.cluster.Name, kind)
		}
		return value, nil
	})
}

// CheckCluster returns why a variable of a rule has no value in a cluster; nil if all have one, or the rule does not match the cluster.
func CheckCluster(rule *shipper.OverrideRule, release string, cluster *shipper.Cluster) error {
	if !InCluster(rule, cluster) {
		return nil
	}
	values := variables{release: release, cluster: cluster}
	for i, operation := range rule.Patch {
		if _, err := values.deep(operation["value"]); err != nil {
			return fmt.Errorf("patch[%d]: %w", i, err)
		}
	}
	return nil
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
		case name == "cluster.name", name == "cluster.region", mapVariable.MatchString(name):
			return "", nil
		}
		return "", fmt.Errorf("unknown variable ${%s}: %s", name, known)
	})
	return err
}
