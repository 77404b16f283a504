// SPDX-License-Identifier: Apache-2.0

package retry

import "strings"

// MaxBrief is the longest message about one error of an application cluster, in bytes. The API server of a tenant's cluster may answer
// megabytes, which must not fill statuses of the management cluster.
const MaxBrief = 1024

// Brief is Within of MaxBrief.
func Brief(err error) string { return Within(err, MaxBrief) }

// Within returns the message of err in at most most bytes. A longer one loses the large values that an API server quotes; if that is not
// enough, it is cut at a rune, and ends with "…". It is empty for nil.
func Within(err error, most int) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) > most {
		text = withoutValues(err)
	}
	if len(text) <= most {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}
