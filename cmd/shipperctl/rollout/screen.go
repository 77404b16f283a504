// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// Screen is the picture for people, in lines of width columns at most. Text is broken and not cut; only the name of a cluster
// that would leave no room for what is said of it is shortened.
func (p *View) Screen(width int, now time.Time) string {
	var out strings.Builder
	line := func(text string) {
		out.WriteString(screen.Shorten(strings.TrimRight(text, " "), width))
		out.WriteByte('\n')
	}
	p.head(line, width, now)
	p.steps(line, width)
	p.table(line, width)
	paragraphs(line, width, "deleting", p.Deleting)
	paragraphs(line, width, "problem", p.Problems)
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

// flow puts parts behind a label, as many in a line as there is room for.
func flow(line func(string), width int, name, between string, parts []string) {
	current := label(name)
	begun := false
	for _, part := range parts {
		if begun && utf8.RuneCountInString(current+between+part) > width {
			line(current)
			current, begun = label(""), false
		}
		if begun {
			current += between
		}
		current += part
		begun = true
	}
	line(current)
}

// head says what is rolled out, by whom and instead of what.
func (p *View) head(line func(string), width int, now time.Time) {
	title := []string{p.Namespace + "/" + p.Application, "chart " + p.Chart}
	if p.Release == "" {
		line(strings.Join(title, "   "))
		return
	}
	asked := age(p.RequestedAt, now) + " ago"
	if p.RequestedBy != "" {
		asked = "by " + p.RequestedBy + ", " + asked
	}
	title = append(title, asked)
	if whole := strings.Join(title, "   "); utf8.RuneCountInString(whole) <= width {
		line(whole)
	} else {
		line(title[0])
		flow(line, width, "", "   ", title[1:])
	}
	release, incumbent := label("release")+p.Release, label("incumbent")+p.Incumbent
	switch both := release + "   " + incumbent; {
	case p.Incumbent == "":
		line(release)
	case utf8.RuneCountInString(both) <= width:
		line(both)
	default:
		line(release)
		line(incumbent)
	}
}

// age is how long ago something was, as kubectl tells it.
func age(t, now time.Time) string { return duration.HumanDuration(max(now.Sub(t), 0)) }

func (p *View) steps(line func(string), width int) {
	var names []string
	for _, s := range p.Steps {
		mark := "·"
		switch {
		case s.Target && (!s.Achieved || len(p.Waiting) > 0):
			mark = "●"
		case s.Achieved:
			mark = "✓"
		}
		names = append(names, mark+" "+s.Name)
	}
	if len(names) > 0 {
		flow(line, width, "steps", "    ", names)
	}
	paragraphs(line, width, "waits for", p.Waiting)
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
