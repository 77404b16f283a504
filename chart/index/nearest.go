// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"shipper.dev/shipper/chart"
)

// mostNearest is how many versions a refusal lists.
const mostNearest = 5

// firstVersion finds the version in a constraint.
var firstVersion = regexp.MustCompile(`\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?`)

// NoMatch is the error when the chart has no version that satisfies c, with the nearest ones.
func (ix *Index) NoMatch(repository, name string, c Constraint) *chart.Error {
	entries := ix.charts[name]
	if len(entries) == 0 {
		return chart.BrokenSpec(chart.ErrNoChart, "repository %s has no chart %q%s", repository, chart.Shorten(name), ix.similar(name))
	}
	asked := fmt.Sprintf("version that satisfies %q", chart.Shorten(c.raw))
	if c.raw == "" {
		asked = "stable version"
	}
	hint := ""
	for _, e := range entries {
		if e.parsed.Prerelease() != "" && c.raw != "" && !c.build && relaxed(c).Check(e.parsed) {
			hint = "; prereleases are taken only when the constraint names one, as in \">=1.0.0-0\""
		}
	}
	return chart.BrokenSpec(chart.ErrNoMatch, "chart %q of repository %s has no %s; the nearest are %s%s",
		chart.Shorten(name), repository, asked, strings.Join(nearest(entries, c.raw), ", "), hint)
}

// relaxed is c with all prereleases admitted.
func relaxed(c Constraint) *semver.Constraints {
	set := *c.set
	set.IncludePrerelease = true
	return &set
}

// nearest lists the versions around the one in raw, newest first; the newest ones when raw contains none.
func nearest(entries []Entry, raw string) []string {
	at := 0
	if about, err := semver.NewVersion(firstVersion.FindString(raw)); err == nil {
		at = sort.Search(len(entries), func(i int) bool { return !entries[i].parsed.GreaterThan(about) })
	}
	from := max(0, min(at-mostNearest/2, len(entries)-mostNearest))
	names := make([]string, 0, mostNearest)
	for _, e := range entries[from:min(len(entries), from+mostNearest)] {
		names = append(names, chart.Shorten(e.Version))
	}
	return names
}

// similar lists charts of the repository with a similar name.
func (ix *Index) similar(wanted string) string {
	var names []string
	for name := range ix.charts {
		if oneSlip(name, wanted) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	return fmt.Sprintf("; did you mean %q?", names[0])
}

// oneSlip reports whether a and b differ only by case, by one additional letter, or by one or two wrong letters.
func oneSlip(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a) > len(b)+1 || len(b) < 3 {
		return false
	}
	start := 0
	for start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return len(a)-start-end <= 2-(len(a)-len(b))
}
