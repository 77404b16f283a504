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
	if spec.Prometheus == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Prometheus.Queries)) {
		if !names(spec.Pass, name) && !names(spec.Fail, name) {
			a.Warn("query %s is not used: neither pass nor fail names it; without data for it, the measurement has no data", name)
		}
	}
}

// names reports whether an expression may name a variable. A field of that name, such as in args.NAME, is another thing.
func names(expression, variable string) bool {
	return regexp.MustCompile(`(^|[^.\w])` + regexp.QuoteMeta(variable) + `\b`).MatchString(expression)
}
