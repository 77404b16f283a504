// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// checkState is a check of the step, as `-o json` prints it.
type checkState struct {
	Name string `json:"name"`
	// Phase is that of the cluster in which it is worst; Cluster names it, and is empty for a check over the fleet.
	Phase   shipper.CheckPhase `json:"phase"`
	Cluster string             `json:"cluster,omitempty"`
	// Measured of the Count measurements that are needed gave a result there; Value is the last one.
	Measured int32  `json:"measured"`
	Count    int32  `json:"count"`
	Value    string `json:"value,omitempty"`
	// DryRun is true for a check that does not count.
	DryRun bool `json:"dryRun,omitempty"`
	// Clusters are the results by cluster; absent while they are unknown, and for a check over the fleet.
	Clusters []checkInCluster `json:"clusters,omitempty"`
}

// checkInCluster is a check in one cluster.
type checkInCluster struct {
	Name     string             `json:"name"`
	Phase    shipper.CheckPhase `json:"phase"`
	Measured int32              `json:"measured"`
	// Message says why the check has failed or is undecided, or why a measurement gave no value.
	Message string `json:"message,omitempty"`
}

// checksOf are the checks of the requested step; none while nothing is known of them. target may be nil.
func checksOf(rel *shipper.Release, target *shipper.CheckTarget) []checkState {
	if progressOf(rel) == nil {
		return nil
	}
	results := []shipper.CheckResult{}
	if check.Current(target, rel) && target.Status.Run == target.Spec.Run {
		results = target.Status.Results
	}
	var out []checkState
	for _, c := range rel.Status.Progress.Checks {
		one := checkState{
			Name: c.Name, Phase: c.Phase, Cluster: c.Cluster, Measured: c.Measured, Count: c.Count, Value: c.Value, DryRun: c.DryRun,
		}
		for _, r := range results {
			if r.Name == c.Name && r.Cluster != "" {
				one.Clusters = append(one.Clusters, checkInCluster{r.Cluster, r.Phase, check.Measured(&r), r.Message})
			}
		}
		slices.SortFunc(one.Clusters, func(a, b checkInCluster) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, one)
	}
	return out
}

// checkMarks are the marks of phases on a screen.
var checkMarks = map[shipper.CheckPhase]string{
	shipper.CheckPending: "·", shipper.CheckRunning: "◐", shipper.CheckPassed: "✓", shipper.CheckHasFailed: "✗", shipper.CheckUndecided: "?",
}

func markOf(phase shipper.CheckPhase) string { return cmp.Or(checkMarks[phase], "?") }

// maxMarked is how many clusters a line marks one by one.
const maxMarked = 8

// drawChecks shows each check in lines of its own, the names in one column.
func (p *View) drawChecks(line func(string), width int) {
	longest, name := 0, "checks"
	for _, c := range p.Checks {
		longest = max(longest, utf8.RuneCountInString(c.title()))
	}
	for _, c := range p.Checks {
		parts := c.parts()
		if len(parts) > 0 {
			title := c.title()
			parts[0] = title + strings.Repeat(" ", longest-utf8.RuneCountInString(title)) + "   " + parts[0]
		} else {
			parts = []string{c.title()}
		}
		flow(line, width, label(name), label("")+"    ", "   ", parts)
		name = ""
	}
}

// title is a check's name with its mark. That of one that does not count is always the same.
func (c *checkState) title() string {
	if c.DryRun {
		return "◌ " + c.Name + " (dry)"
	}
	return markOf(c.Phase) + " " + c.Name
}

// parts say how far a check is: in all, and in each cluster unless there are many.
func (c *checkState) parts() []string {
	var out []string
	if c.DryRun || c.Phase == shipper.CheckUndecided {
		out = append(out, strings.ToLower(string(c.Phase)))
	}
	if c.Count > 1 {
		out = append(out, fmt.Sprintf("%d/%d", c.Measured, c.Count))
	}
	if c.Value != "" {
		text := c.Value
		if c.Cluster != "" {
			text += " (" + c.Cluster + ")"
		}
		out = append(out, text)
	}
	if len(c.Clusters) > maxMarked {
		passed := 0
		for _, in := range c.Clusters {
			if in.Phase == shipper.CheckPassed {
				passed++
			}
		}
		return append(out, fmt.Sprintf("%d of %d clusters ✓", passed, len(c.Clusters)))
	}
	for _, in := range c.Clusters {
		out = append(out, in.Name+" "+markOf(in.Phase))
	}
	return out
}

// lines are for programs that read lines, and for screen readers.
func (c *checkState) lines() []string {
	name := c.Name
	if c.DryRun {
		name += " (dry run)"
	}
	text := fmt.Sprintf("check %s: %s, %d of %d measurements", name, c.Phase, c.Measured, c.Count)
	if c.Value != "" {
		text += ", " + c.Value
	}
	if c.Cluster != "" {
		text += ", in cluster " + c.Cluster
	}
	out := []string{text}
	for _, in := range c.Clusters {
		text := fmt.Sprintf("check %s in cluster %s: %s", name, in.Name, in.Phase)
		if in.Message != "" {
			text += ", " + in.Message
		}
		out = append(out, text)
	}
	return out
}

// checkFailure describes a check that has failed, where, and what came of it; empty when no check has.
func (p *progressView) checkFailure(steps []stepState, target int32, ago string) string {
	f := p.Failure
	if f == nil || f.Reason != shipper.CheckFailed {
		return ""
	}
	at := fmt.Sprintf("step %d (%s)", f.Step, nameOf(steps, f.Step))
	if f.Cluster != "" {
		at += ", " + f.Cluster
	}
	text := fmt.Sprintf("%s: check %s: %s, %s ago", at, f.Check, f.Message, ago)
	switch after, found := strings.CutPrefix(p.Message, p.Failed+"; "); {
	case p.State == shipper.AdvancingGoingBack || p.State == shipper.AdvancingHeldAfterGoingBack:
		text += fmt.Sprintf(": went back to step %d", target)
	case p.State == shipper.AdvancingFailed && found:
		text += ": " + after
	}
	return text
}

// awaitsRetry says how a user has checks made again that are undecided, or that have failed without that anything was done about it; empty
// when there are none.
func awaitsRetry(p *progressView, is *shipper.ReleaseProgress) string {
	undecided := slices.ContainsFunc(is.Checks, func(c shipper.ReleaseCheck) bool {
		return c.Phase == shipper.CheckUndecided && !c.DryRun
	})
	switch f := is.Failure; {
	case p.State == shipper.AdvancingFailed && f != nil && f.Reason == shipper.CheckFailed && f.Action == shipper.OnFailureHold:
		return "a user: `shipperctl rollout retry-checks` makes the checks again, `shipperctl rollout abort` gives the release up"
	case p.State == shipper.AdvancingCheckUndecided && undecided:
		return "a user: what keeps a check undecided has to end, then `shipperctl rollout retry-checks` makes the checks again"
	}
	return ""
}
