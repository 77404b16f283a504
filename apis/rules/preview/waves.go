// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Tasks says, for a user, what a wave waits for once its clusters are done; empty where it waits for nothing.
func Tasks(t *shipper.WaveTasks) string {
	if t == nil || list(t) == "" {
		return ""
	}
	return "; then it waits for " + list(t)
}

// BeforeTasks says, for a user, what a wave waits for before it begins; empty where it waits for nothing.
func BeforeTasks(t *shipper.WaveTasks) string {
	if t == nil {
		return ""
	}
	return "; before it begins it waits for " + list(t)
}

// list lists tasks.
func list(t *shipper.WaveTasks) string {
	var all []string
	if t.Wait != "" {
		all = append(all, string(t.Wait))
	}
	for _, c := range t.Checks {
		all = append(all, "check "+c.NameInStep())
	}
	if t.Approvals > 0 {
		all = append(all, fmt.Sprintf("approvals (%d)", t.Approvals))
	}
	return strings.Join(slices.Concat(all, t.Conditions), ", ")
}

// TasksWithoutClusters is Tasks of a wave without clusters, whose checks are not made.
func TasksWithoutClusters(t *shipper.WaveTasks) string {
	if t == nil {
		return ""
	}
	left := *t
	left.Checks = nil
	out := Tasks(&left)
	if len(t.Checks) > 0 {
		out += "; its checks are not made"
	}
	return out
}
