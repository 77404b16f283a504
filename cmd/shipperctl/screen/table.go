// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// gap is how many blanks there are between columns, and tight where there is little room.
	gap, tight = 3, 2
	// narrowest is how narrow a column may become.
	narrowest = 9
)

// Table lays rows out in columns below a head, in lines of width columns; 0 is unbounded. What does not fit is broken into
// lines within its column, the widest first: nothing is cut off.
func Table(width int, head []string, rows [][]string) string {
	all := append([][]string{head}, rows...)
	widths, between := fitting(all, width)
	var out strings.Builder
	for _, row := range all {
		cells := make([][]string, len(row))
		height := 0
		for i, cell := range row {
			cells[i] = broken(cell, widths[i])
			height = max(height, len(cells[i]))
		}
		for n := range height {
			line := ""
			for i := range cells {
				text := ""
				if n < len(cells[i]) {
					text = cells[i][n]
				}
				line += Pad(text, widths[i]+between)
			}
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return out.String()
}

// fitting are the widths of columns, and what is between them, where the first row is the head. Words stay whole as long as
// they can: they may be names that somebody wants to copy.
func fitting(rows [][]string, width int) (widths []int, between int) {
	widths, words, least := make([]int, len(rows[0])), make([]int, len(rows[0])), make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for _, word := range strings.Fields(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	for i, name := range rows[0] {
		least[i] = narrowest
		for _, word := range strings.Fields(name) {
			least[i] = max(least[i], utf8.RuneCountInString(word))
		}
		words[i] = max(words[i], least[i])
	}
	if width <= 0 || narrow(widths, widths, width-gap*(len(widths)-1)) {
		return widths, gap
	}
	for _, floor := range [][]int{widths, words, least} {
		if narrow(widths, slices.Clone(floor), width-tight*(len(widths)-1)) {
			break
		}
	}
	return widths, tight
}

// narrow takes from the widest columns until all together have no more than a width, but from none below its floor. It tells
// whether they have.
func narrow(widths, floor []int, width int) bool {
	for {
		all, widest := 0, -1
		for i, w := range widths {
			all += w
			if w > floor[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if all <= width || widest < 0 {
			return all <= width
		}
		widths[widest]--
	}
}

// broken breaks a cell between words, behind commas, dashes and slashes, and elsewhere where there are none.
func broken(cell string, width int) []string {
	var out []string
	rest := []rune(cell)
	for len(rest) > width {
		at, skip := width, 0
		for i := width; i > 0; i-- {
			if rest[i] == ' ' {
				at, skip = i, 1
				break
			}
			if strings.ContainsRune(",-/", rest[i-1]) {
				at = i
				break
			}
		}
		out = append(out, string(rest[:at]))
		rest = rest[at+skip:]
	}
	return append(out, string(rest))
}
