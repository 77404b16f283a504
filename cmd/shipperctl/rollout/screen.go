// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// Screen formats the view for a terminal of width columns. Text is wrapped; where even a narrow table has no room, lines are cut.
func (p *View) Screen(width int, now time.Time) string {
	var out strings.Builder
	line := func(text string) {
		out.WriteString(screen.Shorten(strings.TrimRight(text, " "), width))
		out.WriteByte('\n')
	}
	p.head(line, width, now)
	p.steps(line, width, now)
	p.table(line, width)
	paragraphs(line, width, "deleting", p.Deleting)
	paragraphs(line, width, "problem", p.Problems)
	paragraphs(line, width, "overrides", p.overrides())
	paragraphs(line, width, "blocks", p.blocks(now))
	return out.String()
}

// label is the first column of a line that is no row of a cluster.
func label(text string) string { return fmt.Sprintf("%-10s ", text) }

// paragraphs are texts behind one label, each as many lines as it takes.
func paragraphs(line func(string), width int, name string, texts []string) {
	for _, text := range texts {
		for _, part := range screen.Wrap(text, width-len(label(name))) {
			line(label(name) + part)
			name = ""
		}
	}
}

// flow puts parts behind a prefix, as many in a line as there is room for. Further lines begin with next.
func flow(line func(string), width int, prefix, next, between string, parts []string) {
	current := prefix + parts[0]
	for _, part := range parts[1:] {
		if utf8.RuneCountInString(current+between+part) > width {
			line(current)
			current = next + part
			continue
		}
		current += between + part
	}
	line(current)
}

// head shows Application, chart, author, Release and incumbent.
func (p *View) head(line func(string), width int, now time.Time) {
	title := []string{p.Namespace + "/" + p.Application}
	if p.Chart != "" {
		title = append(title, "chart "+p.Chart)
	}
	if p.Release == "" {
		line(strings.Join(title, "   "))
		return
	}
	asked := age(p.RequestedAt, now) + " ago"
	if p.RequestedBy != "" {
		asked = "by " + p.RequestedBy + ", " + asked
	}
	flow(line, width, "", label(""), "   ", append(title, asked))
	release, incumbent := label("release")+p.Release, label("incumbent")+p.Incumbent
	if both := release + "   " + incumbent; p.Incumbent != "" && utf8.RuneCountInString(both) <= width {
		line(both)
		return
	}
	line(release)
	if p.Incumbent != "" {
		line(incumbent)
	}
}

func age(t, now time.Time) string { return duration.HumanDuration(max(now.Sub(t), 0)) }

func (p *View) steps(line func(string), width int, now time.Time) {
	p.waves(line, width)
	var names []string
	for _, s := range p.Steps {
		mark := "·"
		switch {
		case s.Target && (!s.Achieved || len(p.Waiting) > 0):
			mark = "●"
		case s.Achieved:
			mark = "✓"
		}
		names = append(names, mark+" "+s.describe())
	}
	if len(names) > 0 {
		flow(line, width, label("steps"), label(""), "    ", names)
	}
	paragraphs(line, width, "workloads", p.workloads())
	paragraphs(line, width, "failed", p.Progress.failures(p.Steps, now))
	if p.Aborted != "" {
		paragraphs(line, width, "failed", []string{p.Aborted})
	}
	p.drawChecks(line, width)
	paragraphs(line, width, "waits for", p.Waiting)
	paragraphs(line, width, "advances", p.Progress.next(p.Steps, now))
	paragraphs(line, width, "held", p.Progress.holds())
	if p.Complete && len(p.Waiting) == 0 {
		line(label("state") + "complete")
	}
}

func (p *View) blocks(now time.Time) []string {
	out := slices.Clone(p.Blocks.InEffect)
	for _, text := range p.Blocks.Overridden {
		out = append(out, "overridden: "+text)
	}
	if len(out) == 0 && p.Blocks.Unread == "" {
		out = []string{"none in effect"}
	}
	if p.Blocks.Next != "" {
		out = append(out, fmt.Sprintf("next: %s at %s, in %s", p.Blocks.Next,
			p.Blocks.NextStart.Local().Format("Mon 2 Jan 15:04 MST"), duration.HumanDuration(p.Blocks.NextStart.Sub(now))))
	}
	if p.Blocks.Unread != "" {
		out = append(out, p.Blocks.Unread)
	}
	return out
}

// table has a row for each cluster, and notes below. Of many clusters it has those that need a look, and counts the others.
func (p *View) table(line func(string), width int) {
	if len(p.Clusters) == 0 {
		return
	}
	name, numbers, sides := len("cluster"), 0, 1
	if p.Incumbent != "" {
		sides = 2
	}
	clusters, rest := worst(p.Clusters)
	for _, c := range clusters {
		name = max(name, utf8.RuneCountInString(c.Name))
		numbers = max(numbers, len(c.Contender.numbers()), len(c.Incumbent.numbers()))
	}
	// Bars fill the room that names, numbers and traffic leave; below 5 cells there are none.
	bar := min((width-name-len("  100 % : 100 %"))/sides-numbers-4, 20)
	if bar < 5 {
		bar = 0
	}
	var rows [][]string
	for _, c := range clusters {
		rows = append(rows, []string{c.Name, c.Contender.draw(bar, numbers), c.Incumbent.draw(bar, numbers), c.share()})
	}
	text := screen.Table(width, []string{"cluster", "contender", "incumbent", "traffic"}, rows)
	for _, c := range clusters {
		for _, note := range c.Notes {
			text += screen.Hang("  ! ", c.Name+": "+note, width)
		}
	}
	for row := range strings.Lines(text) {
		line(strings.TrimSuffix(row, "\n"))
	}
	if rest != "" {
		for _, part := range screen.Wrap(rest, width) {
			line(part)
		}
	}
}

// numbers are the Pods of a side: those available of those wanted.
func (s *clusterSide) numbers() string {
	switch {
	case s == nil:
		return ""
	case s.asFound:
		return fmt.Sprintf("%d/?", s.Ready)
	}
	return fmt.Sprintf("%d/%d", s.Ready, s.Wanted)
}

// draw is a bar of so many cells, and the numbers of a side.
func (s *clusterSide) draw(bar, numbers int) string {
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

// share is how traffic is shared between the two sides; until a step's shares are achieved, that they move.
func (c *Cluster) share() string {
	if c.Moving {
		return "moving"
	}
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

// Lines are the view for programs that read lines, and for screen readers.
func (p *View) Lines(now time.Time) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	each := func(name string, texts []string) {
		for _, text := range texts {
			line("%s: %s", name, text)
		}
	}
	line("application: %s/%s", p.Namespace, p.Application)
	if p.Chart != "" {
		line("chart: %s", p.Chart)
	}
	if p.Release != "" {
		line("release: %s, by %s, %s ago", p.Release, cmp.Or(p.RequestedBy, "unknown"), age(p.RequestedAt, now))
	}
	if p.Incumbent != "" {
		line("incumbent: %s", p.Incumbent)
	}
	for i, s := range p.Steps {
		if s.Target {
			line("step: %d of %d, %s", i, len(p.Steps)-1, s.Name)
		}
	}
	each("wave", p.waveTexts())
	each("workload", p.workloads())
	line("complete: %t", p.Complete)
	each("waiting", p.Waiting)
	if p.Progress != nil {
		line("advancing: %s", p.Progress.State)
	}
	each("failed", p.Progress.failures(p.Steps, now))
	for i := range p.Checks {
		for _, text := range p.Checks[i].lines() {
			line("%s", text)
		}
	}
	each("advances", p.Progress.next(p.Steps, now))
	each("held", p.Progress.holds())
	each("deleting", p.Deleting)
	each("problem", p.Problems)
	for _, c := range p.Clusters {
		text := fmt.Sprintf("cluster %s: contender %d of %d pods", c.Name, c.Contender.Ready, c.Contender.Wanted)
		if c.Incumbent != nil {
			text += fmt.Sprintf(", incumbent %d of %d pods", c.Incumbent.Ready, c.Incumbent.Wanted)
		}
		line("%s, traffic %s", text, strings.TrimSpace(c.share()))
		if c.Objects != nil {
			line("cluster %s: %d of %d objects healthy", c.Name, c.Objects.Healthy, c.Objects.Total)
		}
		for _, note := range c.Notes {
			line("cluster %s: %s", c.Name, note)
		}
	}
	each("overrides", p.overrides())
	each("blocks", p.blocks(now))
	return out.String()
}
