// SPDX-License-Identifier: Apache-2.0

// Package definition validates what a Check measures and how it judges that, by the Check alone: arguments, queries, requests, Jobs and
// expressions. The webhook and `shipperctl convert` share it.
package definition

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/expression"
)

// Bounds of a Check, besides those of its schema.
const (
	minInterval   = 5 * time.Second
	maxInterval   = 24 * time.Hour
	maxTimeout    = 30 * time.Second
	maxRunTimeout = 24 * time.Hour // of job
)

var specPath = field.NewPath("spec")

// Validate returns the errors of a Check in a namespace, without those of its expressions. The other error is temporary.
func Validate(ctx context.Context, spec *shipper.CheckSpec, namespace string, servers Servers) (field.ErrorList, error) {
	if n := ways(spec); n != 1 {
		why := "give one way to measure: prometheus, http, tests or job"
		if n > 1 {
			why = "give one way to measure, not " + map[int]string{2: "two", 3: "three", 4: "four"}[n]
		}
		return field.ErrorList{field.Invalid(specPath, "(spec)", why)}, nil
	}
	values := rules.Samples(spec.Args)
	errs := append(validateArguments(spec.Args, specPath.Child("args")), validateTimes(spec)...)
	errs = append(errs, validateJudgement(spec)...)
	switch {
	case spec.Prometheus != nil:
		errs = append(errs, servers.validatePrometheus(spec.Prometheus, specPath.Child("prometheus"))...)
	case spec.HTTP != nil:
		errs = append(errs, servers.validateHTTP(spec.HTTP, specPath.Child("http"), values)...)
	case spec.Tests != nil:
		errs = append(errs, validateTests(spec.Tests, specPath.Child("tests"))...)
	}
	more, err := Substituted(ctx, spec, specPath, values, NewParser(namespace))
	return append(errs, more...), err
}

// ways is in how many ways a Check measures.
func ways(spec *shipper.CheckSpec) int {
	n := 0
	for _, given := range []bool{spec.Prometheus != nil, spec.HTTP != nil, spec.Tests != nil, spec.Job != nil} {
		if given {
			n++
		}
	}
	return n
}

func validateArguments(args []shipper.CheckArgument, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, arg := range args {
		at := path.Index(i)
		switch {
		case slices.Contains(rules.Predefined(), arg.Name):
			errs = append(errs, field.Invalid(at.Child("name"), arg.Name,
				"every Check has this argument: use another name than "+strings.Join(rules.Predefined(), ", ")))
		case seen[arg.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), arg.Name))
		}
		seen[arg.Name] = true
		if _, err := rules.Pattern(arg.Pattern); err != nil {
			errs = append(errs, field.Invalid(at.Child("pattern"), arg.Pattern, err.Error()))
			continue
		}
		if arg.Default != nil {
			if err := rules.Matches(arg, *arg.Default); err != nil {
				errs = append(errs, field.Invalid(at.Child("default"), *arg.Default, err.Error()))
			}
		}
	}
	return errs
}

// validateTimes validates interval and timeout, whose values depend on each other.
func validateTimes(spec *shipper.CheckSpec) field.ErrorList {
	var errs field.ErrorList
	invalid := func(name string, value shipper.Duration, why string) {
		errs = append(errs, field.Invalid(specPath.Child(name), value, why))
	}
	if i := rules.Interval(spec); i < minInterval || i > maxInterval {
		invalid("interval", spec.Interval, "must be from 5s to 24h")
	}
	if spec.Timeout == "" {
		return errs
	}
	switch timeout := spec.Timeout.Value(); {
	case timeout <= 0:
		invalid("timeout", spec.Timeout, "must be more than 0s")
	case rules.Once(spec) && timeout > maxRunTimeout:
		invalid("timeout", spec.Timeout, "must be at most 24h")
	case !rules.Once(spec) && (timeout > maxTimeout || timeout > rules.Interval(spec)):
		invalid("timeout", spec.Timeout, "must be at most interval, and at most 30s")
	}
	return errs
}

// validateJudgement validates that a Check can distinguish good and bad measurements.
func validateJudgement(spec *shipper.CheckSpec) field.ErrorList {
	if rules.Once(spec) {
		var errs field.ErrorList
		given := map[string]bool{
			"pass": spec.Pass != "", "fail": spec.Fail != "", "count": spec.Count != 0, "over": spec.Over != "", "noData": spec.NoData != "",
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if given[name] {
				errs = append(errs, field.Forbidden(specPath.Child(name),
					"tests and job run once in each cluster, and pass when they succeed: leave "+name+" out"))
			}
		}
		return errs
	}
	if spec.HTTP != nil && spec.Over == shipper.OverFleet {
		return field.ErrorList{field.Forbidden(specPath.Child("over"), "Fleet is for queries, which give a list: leave over out")}
	}
	if spec.Prometheus != nil && spec.Pass == "" && spec.Fail == "" {
		return field.ErrorList{field.Required(specPath.Child("pass"), "say which values are good, by pass or by fail")}
	}
	return nil
}

func validateTests(tests *shipper.TestsCheck, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range tests.Names {
		errs = append(errs, validateName(name, path.Child("names").Index(i))...)
	}
	return errs
}

// validateName validates the name of an object of Kubernetes.
func validateName(name string, path *field.Path) field.ErrorList {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(wrong, "; "))}
	}
	return nil
}

// Inputs are the variables of pass and fail, as the reconciler declares them.
func Inputs(spec *shipper.CheckSpec) expression.Inputs {
	return expression.Inputs(rules.VariablesOf(spec))
}

// maxShown bounds, in characters, the query that an error shows.
const maxShown = 300

// shown is a text of a user, short enough for an error.
func shown(text string) string {
	if r := []rune(text); len(r) > maxShown {
		return fmt.Sprintf("%s… (%d characters)", string(r[:maxShown]), len(r))
	}
	return text
}
