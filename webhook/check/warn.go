// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"regexp"
	"slices"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// warn warns of what is valid in a Check but probably not intended.
func warn(a *response.Response, spec *shipper.CheckSpec) {
	if !rules.Once(spec) && spec.Count > 0 && spec.FailureLimit >= spec.Count {
		a.Warn("failureLimit (%d) is not less than count (%[2]d): the check passes with one good measurement of %[2]d; after %[2]d bad "+
			"ones it goes on until one is good, or more than %[1]d are bad", spec.FailureLimit, spec.Count)
	}
	warnOfArguments(a, spec)
	if spec.Prometheus == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Prometheus.Queries)) {
		if !names(spec.Pass, name) && !names(spec.Fail, name) {
			a.Warn("query %s is not used: neither pass nor fail names it; without data for it, the measurement has no data", name)
		}
	}
}

// warnOfArguments warns of arguments that reach a server with the credentials of a Secret, and whose values the author has not limited:
// users who may not get the Secret choose them.
func warnOfArguments(a *response.Response, spec *shipper.CheckSpec) {
	secret, _ := secretOf(spec)
	if secret == "" {
		return
	}
	for _, arg := range spec.Args {
		sent := slices.ContainsFunc(requestTexts(spec), func(text string) bool { return rules.Names(text, arg.Name) })
		if sent && arg.Pattern == "" {
			a.Warn("argument %s is sent with the credentials of Secret %s and has no pattern: every user who names this Check may choose "+
				"any value that matches %s; give it a narrow pattern", arg.Name, secret, rules.DefaultPattern)
		}
	}
}

// requestTexts are the texts of a request that arguments are put into.
func requestTexts(spec *shipper.CheckSpec) []string {
	if spec.HTTP != nil {
		return append(slices.Sorted(maps.Values(spec.HTTP.Headers)), spec.HTTP.URL, spec.HTTP.Body)
	}
	var out []string
	for _, query := range spec.Prometheus.Queries {
		out = append(out, string(query))
	}
	return out
}

// names reports whether an expression may name a variable. A field of that name, such as in args.NAME, is another thing.
func names(expression, variable string) bool {
	return regexp.MustCompile(`(^|[^.\w])` + regexp.QuoteMeta(variable) + `\b`).MatchString(expression)
}
