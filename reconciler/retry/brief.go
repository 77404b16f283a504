// SPDX-License-Identifier: Apache-2.0

package retry

import "strings"

// MaxBrief is the longest message about one error of an application cluster, in bytes. The API server of a tenant's cluster may answer
// megabytes, which must not fill statuses of the management cluster.
const MaxBrief = 1024

// Brief is Within of MaxBrief.
func Brief(err error) string { return Within(err, MaxBrief) }

// Within returns the message of err on one line, in at most most bytes. A longer one loses the large values that an API server quotes; if
// that is not enough, it is cut at a rune, and ends with "…". It is empty for nil.
func Within(err error, most int) string {
	if err == nil {
		return ""
	}
	text := oneLine(err.Error())
	if len(text) > most {
		text = oneLine(withoutValues(err))
	}
	if len(text) <= most {
		return text
	}
	const mark = "…"
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// oneLine joins lines: a line break in a condition tears the tables of kubectl apart. Errors that are joined, and lists of API servers,
// have some.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	var out strings.Builder
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		switch last := out.String(); {
		case line == "" || last == "":
		case strings.ContainsAny(last[len(last)-1:], ":;,.({["):
			out.WriteString(" ")
		default:
			out.WriteString("; ")
		}
		out.WriteString(line)
	}
	return out.String()
}
