// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crdBreaks returns what breaks between two versions of a CustomResourceDefinition.
func crdBreaks(before, after []byte) ([]string, error) {
	var old, now apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(before, &old); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(after, &now); err != nil {
		return nil, err
	}
	var faults []string
	if old.Spec.Scope != now.Spec.Scope || old.Spec.Names.Kind != now.Spec.Names.Kind || old.Spec.Names.Plural != now.Spec.Names.Plural {
		faults = append(faults, old.Name+": scope or names changed")
	}
	for _, short := range old.Spec.Names.ShortNames {
		if !slices.Contains(now.Spec.Names.ShortNames, short) {
			faults = append(faults, fmt.Sprintf("%s: short name %s is gone", old.Name, short))
		}
	}
	for _, v := range old.Spec.Versions {
		i := slices.IndexFunc(now.Spec.Versions, func(n apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return n.Name == v.Name && n.Served
		})
		switch {
		case !v.Served:
		case i < 0:
			faults = append(faults, fmt.Sprintf("%s: version %s is no longer served", old.Name, v.Name))
		case v.Schema != nil && now.Spec.Versions[i].Schema != nil:
			faults = append(faults, schemaBreaks(old.Spec.Names.Kind, v.Schema.OpenAPIV3Schema, now.Spec.Versions[i].Schema.OpenAPIV3Schema)...)
		}
	}
	return faults, nil
}

// schemaBreaks returns what a schema no longer takes that it took before, below a path.
func schemaBreaks(path string, old, now *apiextensionsv1.JSONSchemaProps) []string {
	if old == nil || now == nil {
		return nil
	}
	var faults []string
	say := func(format string, args ...any) { faults = append(faults, path+": "+fmt.Sprintf(format, args...)) }
	if old.Type != now.Type || old.Format != now.Format {
		say("type %s%s became %s%s", old.Type, old.Format, now.Type, now.Format)
	}
	for _, r := range now.Required {
		if !slices.Contains(old.Required, r) {
			say("%s became required", r)
		}
	}
	for _, e := range missing(old.Enum, now.Enum) {
		say("value %s is gone", e)
	}
	if len(old.Enum) == 0 && len(now.Enum) > 0 {
		say("takes only %d values now", len(now.Enum))
	}
	for _, v := range now.XValidations {
		if !slices.ContainsFunc(old.XValidations, func(o apiextensionsv1.ValidationRule) bool { return o.Rule == v.Rule }) {
			say("new rule %q", v.Rule)
		}
	}
	tighter(say, "maxLength", old.MaxLength, now.MaxLength, false)
	tighter(say, "minLength", old.MinLength, now.MinLength, true)
	tighter(say, "maxItems", old.MaxItems, now.MaxItems, false)
	tighter(say, "minItems", old.MinItems, now.MinItems, true)
	tighter(say, "maxProperties", old.MaxProperties, now.MaxProperties, false)
	tighter(say, "maximum", old.Maximum, now.Maximum, false)
	tighter(say, "minimum", old.Minimum, now.Minimum, true)
	if now.Pattern != old.Pattern && now.Pattern != "" {
		say("pattern %q became %q", old.Pattern, now.Pattern)
	}
	if string(raw(old.Default)) != string(raw(now.Default)) {
		say("default %s became %s", raw(old.Default), raw(now.Default))
	}
	for name := range old.Properties {
		was := old.Properties[name]
		is, ok := now.Properties[name]
		if !ok {
			if now.XPreserveUnknownFields == nil || !*now.XPreserveUnknownFields {
				say("field %s is gone", name)
			}
			continue
		}
		faults = append(faults, schemaBreaks(path+"."+name, &was, &is)...)
	}
	if old.Items != nil && now.Items != nil {
		faults = append(faults, schemaBreaks(path+"[]", old.Items.Schema, now.Items.Schema)...)
	}
	if old.AdditionalProperties != nil && now.AdditionalProperties != nil {
		faults = append(faults, schemaBreaks(path+"{}", old.AdditionalProperties.Schema, now.AdditionalProperties.Schema)...)
	}
	return faults
}

// tighter says that a bound takes less than before. A minimum takes less when it is higher.
func tighter[T int64 | float64](say func(string, ...any), name string, old, now *T, minimum bool) {
	if now == nil || old != nil && (*now == *old || (*now < *old) == minimum) {
		return
	}
	if old == nil {
		say("%s became %v", name, *now)
		return
	}
	say("%s %v became %v", name, *old, *now)
}

// missing returns the values of a list that another one has not. A list without values takes every value.
func missing(old, now []apiextensionsv1.JSON) []string {
	var out []string
	for _, e := range old {
		if len(now) > 0 && !slices.ContainsFunc(now, func(n apiextensionsv1.JSON) bool { return string(n.Raw) == string(e.Raw) }) {
			out = append(out, string(e.Raw))
		}
	}
	return out
}

// raw is a default as JSON, or null.
func raw(v *apiextensionsv1.JSON) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v.Raw
}

var (
	commandOf = regexp.MustCompile(`(?m)^## (shipper.*)$`)
	flagOf    = regexp.MustCompile("`(--[a-z][a-z0-9-]*)")
)

// flagBreaks returns the commands and flags that one text of docs/cli.md has and a later one has not.
func flagBreaks(before, after string) []string {
	old, now := flags(before), flags(after)
	var faults []string
	for command, names := range old {
		if now[command] == nil {
			faults = append(faults, command+": is gone")
			continue
		}
		for name := range names {
			if !now[command][name] {
				faults = append(faults, fmt.Sprintf("%s: %s is gone", command, name))
			}
		}
	}
	return faults
}

// flags returns the flags of each command of a text of docs/cli.md.
func flags(text string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	found := commandOf.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		names := map[string]bool{}
		for line := range strings.SplitSeq(text[at[1]:end], "\n") {
			if m := flagOf.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, "|") {
				names[m[1]] = true
			}
		}
		out[text[at[2]:at[3]]] = names
	}
	return out
}
