// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What is said about everything that may not be read.
const (
	unknown         = "nothing is known about it"
	asAdministrator = "run this again as a user who may read it; an administrator may"
)

// access matches the API server's words about a right that is missing.
var access = regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// deniedBy is the right that err says is missing; empty if err says something else.
func deniedBy(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return ""
	}
	m := access.FindStringSubmatch(status.Status().Message)
	if m == nil {
		return ""
	}
	return m[1] + " " + right{namespace: m[4], group: m[3], resource: m[2]}.String()
}

// once puts what may not be read for want of rights into one finding, which lists the rights. Checks of which nothing could be
// read are left out.
func once(checks []Check) []Check {
	var denied []string
	var out []Check
	for _, c := range checks {
		kept := slices.DeleteFunc(slices.Clone(c.Findings), func(f Finding) bool {
			denied = append(denied, f.Denied...)
			return len(f.Denied) > 0
		})
		if len(kept) > 0 || len(c.Findings) == 0 {
			out = append(out, Check{c.Title, kept})
		}
	}
	if len(denied) == 0 {
		return out
	}
	slices.Sort(denied)
	return append(out, Check{"your rights", []Finding{{
		Level: Broken, What: "you may not:\n" + strings.Join(slices.Compact(denied), "\n"),
		Why: "what needs these rights could not be looked at", Do: asAdministrator,
	}}})
}
