// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// analysis is where a Rollout names templates.
type analysis struct {
	Templates []templateRef `json:"templates"`
	Args      []struct {
		Name      string `json:"name"`
		Value     string `json:"value"`
		ValueFrom *struct {
			PodTemplateHashValue string   `json:"podTemplateHashValue"`
			FieldRef             fieldRef `json:"fieldRef"`
		} `json:"valueFrom"`
	} `json:"args"`
	DryRun dryRun `json:"dryRun"`
	// StartingStep is that of an analysis in the background.
	StartingStep int32 `json:"startingStep"`
}

var convertedAnalysis = []string{"args", "dryRun", "startingStep", "templates"}

// analyses are all those of a Rollout.
func (r *rollout) analyses() []*analysis {
	var all []*analysis
	if c := r.Spec.Strategy.Canary; c != nil {
		all = append(all, c.Analysis)
		for i := range c.Steps {
			all = append(all, c.Steps[i].Analysis)
		}
	}
	if b := r.Spec.Strategy.BlueGreen; b != nil {
		all = append(all, b.PrePromotionAnalysis, b.PostPromotionAnalysis)
	}
	return slices.DeleteFunc(all, func(a *analysis) bool { return a == nil })
}

// given is the value of an argument.
type given struct {
	// as is the argument of every Check that the value is; empty if it is none. why is the source of a value that is not known.
	value, as, why string
}

// hashes are the arguments of every Check that hashes of Pod templates become.
var hashes = map[string]string{"Latest": "release", "Stable": checkrules.Incumbent}

var labelPath = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// values are the arguments that an analysis gives.
func (a *analysis) values(by document) map[string]given {
	out := map[string]given{}
	for _, arg := range a.Args {
		switch {
		case arg.ValueFrom == nil:
			out[arg.Name] = given{value: arg.Value}
		case arg.ValueFrom.PodTemplateHashValue != "":
			out[arg.Name] = given{as: hashes[arg.ValueFrom.PodTemplateHashValue], why: "podTemplateHashValue"}
		default:
			out[arg.Name] = fieldValue(by, arg.ValueFrom.FieldRef.FieldPath)
		}
	}
	return out
}

// fieldValue is the value of a field of a Rollout.
func fieldValue(by document, path string) given {
	out := given{as: ofFields[path], why: path}
	switch found := labelPath.FindStringSubmatch(path); {
	case path == "metadata.name":
		out.value = by.GetName()
	case path == "metadata.namespace":
		out.value = by.GetNamespace()
	case found != nil && found[1] == "labels":
		out.value = by.GetLabels()[found[2]]
	case found != nil:
		out.value = by.GetAnnotations()[found[2]]
	}
	return out
}

// note records in the templates which values an analysis gives.
func (x *index) note(by document, a *analysis) {
	found, _ := x.reach(by, a.Templates)
	values := a.values(by)
	for _, t := range found {
		t.used = true
		t.args.uses++
		for _, arg := range t.args.all {
			value, is := values[arg.name]
			switch {
			case is && value.as != "":
				arg.dynamic[value.as]++
			case is:
				arg.given = append(arg.given, value.value)
			case arg.value == nil:
				if of := defaultOf(found, arg.name); of != nil {
					arg.given = append(arg.given, *of)
				}
			}
		}
	}
}

// defaultOf is the default of an argument in any of the templates of one analysis, which Argo makes one; nil if there is none.
func defaultOf(all []*template, name string) *string {
	for _, t := range all {
		if arg := t.args.find(name); arg != nil && arg.value != nil {
			return arg.value
		}
	}
	return nil
}

// notConverted is a review of a template that is in the input.
const notConverted = "%s could not be converted: correct it as its error says, and convert both again"

// checks converts an analysis at a field. whole is false if a person has to judge what is missing.
func (x *index) checks(by document, a *analysis, field string, report *report) (checks []shipper.StepCheck, whole bool, err error) {
	found, missing := x.reach(by, a.Templates)
	whole = len(found)+len(missing) > 0
	if !whole {
		report.add(field, "names no templates, so that there is nothing to check")
	}
	values := a.values(by)
	for _, t := range found {
		if t.unmeasured {
			whole = false
			report.add(field, notConverted, t.title())
			continue
		}
		for _, m := range t.metrics {
			if m.check == nil {
				whole = false
				report.add(field, "the metric %s of %s has no Check, and is not measured", m.name, t.title())
				continue
			}
			checks = append(checks, shipper.StepCheck{
				Check: checkReference(m.check.Name, t.shared()), DryRun: m.dry || a.DryRun.has(m.name),
				Args: t.stepArgs(m, found, values, field, report),
			})
		}
	}
	for _, ref := range missing {
		kind := namespacedTemplate
		if ref.ClusterScope {
			kind = clusterTemplate
		}
		if title := kind + " " + ref.TemplateName; slices.Contains(x.failed, title) {
			report.add(field, notConverted, title)
		} else {
			report.add(field, "the %s is not in the input: convert it, too, and name its Checks here", title)
		}
		checks = append(checks, shipper.StepCheck{
			Check: checkReference(ref.TemplateName, ref.ClusterScope), Args: literals(values, field, report), DryRun: a.DryRun.has(""),
		})
	}
	if len(checks) > maxChecks {
		return nil, false, by.failed(field, "makes %d checks, and a step has %d at most", len(checks), maxChecks)
	}
	return checks, whole, nil
}

// checkReference is the name of a Check as steps have it.
func checkReference(name string, shared bool) string {
	if shared {
		return checkrules.SharedNamespace + "/" + name
	}
	return name
}

// stepArgs are the arguments that a step gives to a Check, and reports those that it cannot give.
func (t *template) stepArgs(
	m convertedMetricCheck, found []*template, values map[string]given, field string, report *report,
) map[string]string {
	out, check := map[string]string{}, m.check
	for _, arg := range t.args.all {
		if !m.uses[arg.name] {
			continue
		}
		value, is := values[arg.name]
		as := t.args.predefined(arg)
		if as != "" && value.why == "podTemplateHashValue" {
			report.add(field, "the argument %s becomes $(%s) in the Check %s: Pods have no label %s, but shipper-release=$(%s): have the query "+
				"select that", arg.name, as, check.Name, hashLabel, as)
		}
		if as != "" {
			continue
		}
		usual := defaultOf(found, arg.name)
		switch {
		case is && value.why != "" && value.value == "":
			report.add(field, "the argument %s of the Check %s comes from %s: write its value, or use an argument of every Check, such as "+
				"$(release), in the Check", arg.as, check.Name, value.why)
		case is:
			out[arg.as] = value.value
		case arg.value == nil && usual != nil:
			out[arg.as] = *usual
		case arg.value == nil:
			report.add(field, "the argument %s of the Check %s has no value: write it", arg.as, check.Name)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// literals are the arguments for a Check that is not in the input.
func literals(values map[string]given, field string, report *report) map[string]string {
	var out map[string]string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if value.why != "" && value.value == "" {
			report.add(field, "the argument %s comes from %s: use an argument of every Check, such as $(release), in the Check", name, value.why)
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[argumentName(name)] = value.value
	}
	return out
}

// failurePolicy has failed checks go back, as failed analyses do in Argo.
func failurePolicy(s *shipper.RolloutStrategy, report *report) {
	counts := false
	for i := range s.Steps {
		counts = counts || slices.ContainsFunc(s.ChecksAt(int32(i)), func(c shipper.StepCheck) bool { return !c.DryRun })
	}
	if s.OnFailure != "" || !counts {
		return
	}
	s.OnFailure = shipper.OnFailureAbort
	if s.Steps[0].Traffic.Contender == 0 {
		s.OnFailure = shipper.OnFailureRetreat
	}
	report.add("spec.progressDeadlineAbort", "is absent: a failed check goes back as in Argo, by onFailure: %s, and so does a missed "+
		"progressDeadline, unlike in Argo: leave progressDeadline out of the Application to have none", s.OnFailure)
}

// unique gives names to checks that would have the same one at a step.
func unique(s *shipper.RolloutStrategy) {
	rename := func(checks []shipper.StepCheck, inUse map[string]bool) {
		for i := range checks {
			name := checks[i].NameInStep()
			for n := 2; inUse[checks[i].NameInStep()]; n++ {
				checks[i].Name = fmt.Sprintf("%s-%d", name[:min(len(name), 60)], n)
			}
			inUse[checks[i].NameInStep()] = true
		}
	}
	background := map[string]bool{}
	rename(s.Checks, background)
	for i := range s.Steps {
		rename(s.Steps[i].Checks, maps.Clone(background))
	}
}

// counted reports metrics in the background that are measured so many times in Argo, and so many times at each step here.
func (x *index) counted(by document, a *analysis, report *report, field string) {
	found, _ := x.reach(by, a.Templates)
	for _, t := range found {
		for _, m := range t.metrics {
			if m.check != nil && m.check.Spec.Count > 1 {
				report.add(field, "the Check %s has count %d at each step, and Argo has it in all: leave count out of the Check to measure as long as "+
					"the step takes", m.check.Name, m.check.Spec.Count)
			}
		}
	}
}
