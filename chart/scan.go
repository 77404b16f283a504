// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"strings"
)

// scanIndex reads an index in the layout that helm, ChartMuseum and their kin write: block style, one field a line. It
// passes over what it does not need by indentation alone, which YAML lets no value undercut, and gives up (ok false) at
// the first thing it is not sure to understand; then the general parser decides. What only a hand would write, a quoted
// text that goes on further left than it began, is not looked for.
func scanIndex(data []byte) (entries map[string][]listing, ok bool) {
	if breaksLines(data) {
		return nil, false
	}
	s := &scanner{rest: data, entries: map[string][]listing{}}
	for s.next() {
		if !s.take() {
			return nil, false
		}
	}
	if !s.sawEntries {
		return nil, false
	}
	return s.entries, true
}

// breaksLines reports whether there are line breaks that YAML knows and that are not a line feed.
func breaksLines(data []byte) bool {
	if bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return true
	}
	for _, other := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(data, []byte(other)) {
			return true
		}
	}
	return false
}

// scanner walks the lines of an index. Depths are columns.
type scanner struct {
	rest   []byte
	line   string
	indent int

	entries    map[string][]listing
	sawEntries bool
	// inEntries is true between the key entries and the next key of the top.
	inEntries bool
	// chart is the chart whose versions are read; its key stands at chartAt. Zero: none yet.
	chart   string
	chartAt int
	// itemAt is where the dashes of its versions stand, fieldAt where their fields do. -1: none yet.
	itemAt, fieldAt int
	// inURLs is true while the items of urls are read.
	inURLs bool
	// closed is true when the field just read was a whole scalar, so that nothing may stand deeper below it.
	closed bool
}

// next moves to the next line that is neither blank nor a comment.
func (s *scanner) next() bool {
	for len(s.rest) > 0 {
		line := s.rest
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line, s.rest = line[:end], s.rest[end+1:]
		} else {
			s.rest = nil
		}
		line = bytes.TrimRight(line, " \t\r")
		trimmed := bytes.TrimLeft(line, " ")
		if len(trimmed) == 0 || trimmed[0] == '#' {
			continue
		}
		s.indent = len(line) - len(trimmed)
		if s.inEntries && s.skips() {
			continue
		}
		s.line = string(trimmed)
		return true
	}
	return false
}

// skips reports whether the line belongs to a value that is passed over, before anything is made of it.
func (s *scanner) skips() bool {
	return s.fieldAt >= 0 && s.indent > s.fieldAt && !s.inURLs && !s.closed
}

// take makes something of the line; false: it cannot be understood here.
func (s *scanner) take() bool {
	switch {
	case s.line[0] == '\t':
		return false
	case !s.inEntries && (s.indent > 0 || strings.HasPrefix(s.line, "- ")):
		return true
	case s.indent == 0 && s.line[0] != '-', !s.inEntries:
		return s.top()
	case s.chartAt == 0 || s.indent <= s.chartAt && s.line[0] != '-':
		return s.key()
	case s.line == "-" || strings.HasPrefix(s.line, "- "):
		return s.dash()
	case s.indent == s.fieldAt:
		return s.field(s.line)
	default:
		return false
	}
}

// top reads a key of the file itself.
func (s *scanner) top() bool {
	s.inEntries = false
	if s.line == "---" && !s.sawEntries {
		return true
	}
	key, value, ok := split(s.line)
	if !ok || strings.HasPrefix(s.line, "---") || strings.HasPrefix(s.line, "...") {
		return false
	}
	if key == "entries" {
		if value != "" || s.sawEntries {
			return false
		}
		s.inEntries, s.sawEntries = true, true
		s.leaveItem()
	}
	return true
}

// key reads the name of a chart.
func (s *scanner) key() bool {
	key, value, ok := split(s.line)
	if !ok || value != "" || (s.chartAt > 0 && s.indent != s.chartAt) {
		return false
	}
	if _, again := s.entries[key]; again {
		return false
	}
	s.chart, s.chartAt = key, s.indent
	s.itemAt = -1
	s.leaveItem()
	s.entries[key] = nil
	return true
}

// dash reads the beginning of a version, or one of its URLs.
func (s *scanner) dash() bool {
	if s.inURLs && s.indent >= s.fieldAt {
		url, ok := scalar(strings.TrimLeft(s.line[1:], " "))
		if !ok || url == "" {
			return false
		}
		versions := s.entries[s.chart]
		last := &versions[len(versions)-1]
		last.URLs = append(last.URLs, url)
		return true
	}
	if s.itemAt < 0 {
		s.itemAt = s.indent
	}
	if s.indent > s.itemAt && s.indent == s.fieldAt && !s.closed {
		return true // an item of a list that is passed over
	}
	rest := strings.TrimLeft(s.line[1:], " ")
	if s.indent != s.itemAt || rest == "" {
		return false
	}
	s.entries[s.chart] = append(s.entries[s.chart], listing{})
	s.fieldAt = s.indent + len(s.line) - len(rest)
	return s.field(rest)
}

// field reads one field of a version.
func (s *scanner) field(line string) bool {
	s.inURLs, s.closed = false, false
	key, value, ok := split(line)
	versions := s.entries[s.chart]
	if !ok || key == "<<" || len(versions) == 0 {
		return false
	}
	last := &versions[len(versions)-1]
	switch key {
	case "version":
		last.Version, ok = scalar(value)
		s.closed = true
	case "digest":
		last.Digest, ok = scalar(value)
		s.closed = true
	case "urls":
		ok = value == "" && last.URLs == nil
		s.inURLs = true
	}
	return ok
}

// leaveItem forgets the version that was read.
func (s *scanner) leaveItem() {
	s.fieldAt, s.inURLs, s.closed = -1, false, false
}

// split parts `key: value`; a key that is not one plain word is not understood.
func split(line string) (key, value string, ok bool) {
	key, value, found := strings.Cut(line, ":")
	if !found || (value != "" && value[0] != ' ') || !isWord(key) || isNull(key) {
		return "", "", false
	}
	value = strings.TrimLeft(value, " ")
	if strings.HasPrefix(value, "#") {
		value = ""
	}
	return key, value, true
}

// isWord reports whether a text has nothing that YAML could make something of.
func isWord(text string) bool {
	for i, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
		case i > 0 && (c == '-' || c == '.' || c == '/'):
		default:
			return false
		}
	}
	return text != ""
}

// isNull reports whether YAML takes a plain text for nothing.
func isNull(text string) bool {
	return text == "" || text == "~" || text == "null" || text == "Null" || text == "NULL"
}

// scalar reads a value that stands whole on its line: plain, or quoted with nothing to unescape.
func scalar(value string) (string, bool) {
	if isNull(value) {
		return "", true
	}
	if quote := value[0]; quote == '"' || quote == '\'' {
		inner, rest, found := strings.Cut(value[1:], value[:1])
		if !found || rest != "" || strings.ContainsRune(inner, '\\') {
			return "", false
		}
		return inner, true
	}
	if strings.ContainsAny(value[:1], "|>&*!%@`{}[],?#-") || strings.Contains(value, " #") ||
		strings.Contains(value, ": ") || strings.HasSuffix(value, ":") || strings.ContainsRune(value, '\t') {
		return "", false
	}
	return value, true
}
