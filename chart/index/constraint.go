// SPDX-License-Identifier: Apache-2.0

package index

import (
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"shipper.dev/shipper/chart"
)

// anyStable is the meaning of an empty constraint.
const anyStable = "*"

// hyphenated matches two versions joined by a hyphen without blanks, neither with prerelease or metadata.
var hyphenated = regexp.MustCompile(`^(v?\d+(?:\.\d+){0,2})-(v?\d+(?:\.\d+){0,2})$`)

// operators end or begin terms of a constraint; a version after one is never a hyphen range.
const operators = "=!<>~^-"

// Constraint is a parsed version constraint.
type Constraint struct {
	// raw is what the user wrote, without blanks around it.
	raw string
	// build is true when raw is one version with build metadata, which must match exactly.
	build bool
	// set is the parsed form of semver.
	set *semver.Constraints
}

// ParseConstraint parses raw or returns an *chart.Error with ErrBadConstraint.
func ParseConstraint(raw string) (Constraint, error) {
	raw = strings.TrimSpace(raw)
	expanded := raw
	if raw == "" {
		expanded = anyStable
	}
	set, err := semver.NewConstraint(expandHyphens(expanded))
	if err != nil {
		return Constraint{}, chart.BrokenSpec(chart.ErrBadConstraint, "%q is neither a version nor a constraint such as %q, %q or %q; "+
			"leave it empty for the newest stable version: %s",
			chart.Shorten(raw), "1.2.3", "~1.2", ">=1.2.3, <2", chart.Shorten(err.Error()))
	}
	c := Constraint{raw: raw, set: set}
	if v, err := exactVersion(raw); err == nil {
		c.build = v.Metadata() != ""
	}
	return c, nil
}

// Exactly admits one version, by its name.
func Exactly(version string) Constraint { return Constraint{raw: version, build: true} }

// names reports whether version equals the text that c was written as, except for a leading v.
func (c Constraint) names(version string) bool {
	return c.raw != "" && strings.TrimPrefix(version, "v") == strings.TrimPrefix(c.raw, "v")
}

// admits reports whether v satisfies c by its range, not by its name.
func (c Constraint) admits(v *semver.Version) bool {
	return !c.build && c.set.Check(v)
}

// Satisfies reports whether version satisfies constraint, in the language of the package comment. Every stable version satisfies an empty
// constraint.
func Satisfies(constraint, version string) (bool, error) {
	c, err := ParseConstraint(constraint)
	if err != nil {
		return false, err
	}
	if c.names(version) {
		return true, nil
	}
	v, err := semver.NewVersion(version)
	return err == nil && c.admits(v), nil
}

// IsExact reports whether version can only mean one version, whatever the index contains. A text that may be a range, such as
// `1.2.3-4.5.6`, is not exact.
func IsExact(version string) bool {
	if _, err := exactVersion(version); err != nil {
		return false
	}
	_, _, isRange := hyphenRange(version)
	return !isRange
}

// exactVersion parses a whole version: three numbers, perhaps with a v before and a prerelease and metadata behind.
func exactVersion(version string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
}

// expandHyphens adds blanks around the hyphen of ranges such as `1.2.3-4.5.6`, as semver requires.
func expandHyphens(raw string) string {
	alternatives := strings.Split(raw, "||")
	for i, alternative := range alternatives {
		terms := strings.FieldsFunc(alternative, func(r rune) bool { return r == ' ' || r == '\t' })
		for j, term := range terms {
			bare := strings.TrimRight(term, ",")
			if (j > 0 && endsOpen(terms[j-1])) || (j+1 < len(terms) && terms[j+1] == "-") {
				continue
			}
			parts := strings.Split(bare, ",")
			for k, part := range parts {
				if low, high, ok := hyphenRange(part); ok {
					parts[k] = low + " - " + high
				}
			}
			terms[j] = strings.Join(parts, ", ") + term[len(bare):]
		}
		alternatives[i] = strings.Join(terms, " ")
	}
	return strings.Join(alternatives, " || ")
}

// endsOpen reports whether term ends in an operator, so that the next term belongs to it.
func endsOpen(term string) bool {
	return strings.ContainsRune(operators, rune(term[len(term)-1]))
}

// hyphenRange splits `1.2.3-4.5.6` and `1.2-4.5` into their bounds. A whole version followed by less than a whole
// version is a prerelease (`1.2.3-4`), and so is a pair that is upside down (`2.0.0-1.0.0`): as a range it would
// match nothing.
func hyphenRange(term string) (low, high string, ok bool) {
	m := hyphenated.FindStringSubmatch(term)
	if m == nil {
		return "", "", false
	}
	low, high = m[1], m[2]
	if strings.Count(low, ".") == 2 && strings.Count(high, ".") < 2 {
		return "", "", false
	}
	from, err := semver.NewVersion(low)
	if err != nil {
		return "", "", false
	}
	to, err := semver.NewVersion(high)
	if err != nil || to.LessThan(from) {
		return "", "", false
	}
	return low, high, true
}
