// SPDX-License-Identifier: Apache-2.0

package retry

import "strings"

// MaxBrief is the longest message about one error of an application cluster, in bytes. The API server of a tenant's cluster may answer
// megabytes, which must not fill statuses of the management cluster.
const MaxBrief = 1024

// Brief returns the message of err, cut at a rune to at most MaxBrief bytes; a cut one ends with "…". It is empty for nil.
func Brief(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) <= MaxBrief {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:MaxBrief-len(mark)], "") + mark
}
