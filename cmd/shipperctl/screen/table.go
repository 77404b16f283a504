// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// gap is the number of blanks between columns, narrowest the least width of a column.
	gap, narrowest = 3, 9
)

// Table renders rows in columns below a head, in lines of at most width columns; 0 is unbounded. Cells that do not fit are
// broken into lines: nothing is cut off. Columns without any text are left out.
func Table(width int, head []string, rows [][]string) string {
	for i := len(head) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(rows, func(cells []string) bool { return cells[i] != "" }) {
			head = slices.Delete(slices.Clone(head), i, i+1)
			for n := range rows {
				rows[n] = slices.Delete(rows[n], i, i+1)
			}
		}
	}
	t := table.NewWriter()
	t.SuppressTrailingSpaces()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: strings.Repeat(" ", gap)},
		Options: table.OptionsNoBordersAndSeparators,
	})
	t.AppendHeader(row(head))
	for _, cells := range rows {
		t.AppendRow(row(cells))
	}
	var columns []table.ColumnConfig
	for i, width := range widths(append([][]string{head}, rows...), width) {
		columns = append(columns, table.ColumnConfig{Number: i + 1, WidthMax: width, WidthMaxEnforcer: text.WrapSoft})
	}
	t.SetColumnConfigs(columns)
	return t.Render() + "\n"
}

func row(cells []string) table.Row {
	out := make(table.Row, len(cells))
	for i, cell := range cells {
		out[i] = cell
	}
	return out
}

// widths of columns, where the first row is the head. Words stay whole while there is room: they may be names to copy.
func widths(rows [][]string, width int) []int {
	columns := len(rows[0])
	out, words, least := make([]int, columns), make([]int, columns), make([]int, columns)
	for n, cells := range rows {
		for i, cell := range cells {
			longest := narrowest
			for _, word := range strings.Fields(cell) {
				longest = max(longest, text.StringWidth(word))
			}
			if n == 0 {
				least[i] = longest
			}
			out[i], words[i] = max(out[i], text.StringWidth(cell)), max(words[i], longest)
		}
	}
	room := width - gap*(columns-1)
	if width > 0 && !narrow(out, words, room) {
		narrow(out, least, room)
	}
	return out
}

// narrow takes from the widest columns until all together fit the room, but from none below its floor, and reports whether they fit.
func narrow(widths, floor []int, room int) bool {
	for {
		all, widest := 0, -1
		for i, w := range widths {
			all += w
			if w > floor[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if all <= room || widest < 0 {
			return all <= room
		}
		widths[widest]--
	}
}
