// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// How many cells a bar may have. Where there is no room for the fewest there is none, and numbers alone tell; it is enough
// where the room is better used for a note.
const fewest, enough, most = 5, 12, 40

// noteMark is what a note behind a row begins with.
const noteMark = "   ! "

// layout is how wide the columns of the table are.
type layout struct {
	width, name int
	// bar is how many cells each bar has, numbers how wide the numbers beside it are.
	bar, numbers, traffic int
	incumbent             bool
}

// layout gives bars what the other columns leave.
func (p *View) layout(width int) layout {
	l := layout{width: width, name: len("cluster"), numbers: len("0/0"), traffic: len("traffic"), incumbent: p.Incumbent != ""}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		l.name = max(l.name, utf8.RuneCountInString(c.Name))
		l.numbers = max(l.numbers, len(c.Contender.numbers()), len(c.Incumbent.numbers()))
		l.traffic = max(l.traffic, len(c.share()))
	}
	sides := 1
	if l.incumbent {
		sides = 2
	}
	rest := func() int { return (width-l.name-2-l.traffic)/sides - 2 - 1 - l.numbers }
	if most := max(width/3, 12); rest() < fewest {
		l.name = min(l.name, most)
	}
	l.bar = min(rest(), most)
	if beside := rest() - (p.longestNote()+sides-1)/sides; beside >= enough {
		l.bar = min(beside, most)
	}
	if l.bar < fewest {
		l.bar = 0
	}
	return l
}

// longestNote is how much room notes take behind their rows.
func (p *View) longestNote() int {
	longest := 0
	for i := range p.Clusters {
		if notes := p.Clusters[i].Notes; len(notes) == 1 {
			longest = max(longest, utf8.RuneCountInString(noteMark+notes[0]))
		}
	}
	return longest
}

// column is how wide the column of a side is.
func (l layout) column() int {
	if l.bar == 0 {
		return max(l.numbers, len("contender"))
	}
	return max(l.bar+1+l.numbers, len("contender"))
}

func (l layout) row(cluster, contender, incumbent, traffic string) string {
	text := screen.Pad(screen.Shorten(cluster, l.name), l.name) + "  " + screen.Pad(contender, l.column())
	if l.incumbent {
		text += "  " + screen.Pad(incumbent, l.column())
	}
	return text + "  " + traffic
}

// table has a row for each cluster, and its notes behind or below.
func (p *View) table(line func(string), width int) {
	if len(p.Clusters) == 0 {
		return
	}
	l := p.layout(width)
	line(l.row("cluster", "contender", "incumbent", "traffic"))
	for i := range p.Clusters {
		c := &p.Clusters[i]
		row := l.row(c.Name, c.Contender.draw(l.bar, l.numbers), c.Incumbent.draw(l.bar, l.numbers), screen.Pad(c.share(), l.traffic))
		if len(c.Notes) == 1 && utf8.RuneCountInString(row+noteMark+c.Notes[0]) <= width {
			line(row + noteMark + c.Notes[0])
			continue
		}
		line(row)
		for _, note := range c.Notes {
			for part := range strings.Lines(screen.Hang("  ! ", note, width)) {
				line(strings.TrimSuffix(part, "\n"))
			}
		}
	}
}

// numbers are the Pods of a side: those available of those wanted.
func (s *Side) numbers() string {
	switch {
	case s == nil:
		return ""
	case s.asFound:
		return fmt.Sprintf("%d/?", s.Ready)
	}
	return fmt.Sprintf("%d/%d", s.Ready, s.Wanted)
}

// draw is the bar of a side, of so many cells, and its numbers.
func (s *Side) draw(bar, numbers int) string {
	if s == nil {
		return ""
	}
	told := strings.Repeat(" ", max(numbers-len(s.numbers()), 0)) + s.numbers()
	if bar == 0 {
		return told
	}
	all := max(s.All, s.Wanted, s.Ready, 1)
	ready := cells(s.Ready, all, bar)
	wanted := max(cells(s.Wanted, all, bar)-ready, 0)
	if s.asFound {
		wanted = 0
	}
	return strings.Repeat("█", ready) + strings.Repeat("▒", wanted) + strings.Repeat("░", bar-ready-wanted) + " " + told
}

// cells are how many of the cells of a bar some Pods of all fill: none is none, a few are one at least, and all but a few are
// not the whole.
func cells(pods, all int32, bar int) int {
	n := int(int64(pods) * int64(bar) / int64(all))
	if n == 0 && pods > 0 {
		return 1
	}
	return n
}

// share is how traffic is shared between the two sides.
func (c *Cluster) share() string {
	contender, incumbent := uint64(c.Contender.Weight), uint64(0)
	if c.Incumbent != nil {
		incumbent = uint64(c.Incumbent.Weight)
	}
	all := contender + incumbent
	switch {
	case all == 0:
		return "none"
	case c.Incumbent == nil:
		return "100 %"
	}
	percent := (contender*100 + all/2) / all
	return fmt.Sprintf("%3d %% : %d %%", percent, 100-percent)
}
