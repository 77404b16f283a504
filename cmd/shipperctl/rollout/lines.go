// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Lines are the picture for programs that read lines, and for those to whom a screen is read aloud.
func (p *View) Lines(now time.Time) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("application: %s/%s", p.Namespace, p.Application)
	line("chart: %s", p.Chart)
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
	line("complete: %t", p.Complete)
	for _, text := range p.Waiting {
		line("waiting: %s", text)
	}
	for _, text := range p.Deleting {
		line("deleting: %s", text)
	}
	for _, text := range p.Problems {
		line("problem: %s", text)
	}
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
	for _, text := range p.blocks(now) {
		line("blocks: %s", text)
	}
	return out.String()
}
