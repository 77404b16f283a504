// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/apis/rules/printable"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newHistory(o *options) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "history APPLICATION",
		Short: "List the releases of an application, the newest first: what each changed, who asked for it, what became of it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			found := historyOf(rels)
			return format.Print(cmd.OutOrStdout(), found, func(width int) string { return table(found, width, o.clock.Now()) })
		},
	}
	format.Register(cmd.Flags())
	return cmd
}

// Past is a Release in the history of its Application, also in `-o json`.
type Past struct {
	Release string `json:"release"`
	// Generation is its place in the history, from 0.
	Generation int `json:"generation"`
	// Chart and Version are empty of a Release of resources.
	Chart   string `json:"chart"`
	Version string `json:"version"`
	// Digest is the sha256 of the chart's archive; empty while it is not known.
	Digest string `json:"digest,omitempty"`
	// Signature names the signer of the archive, where a signature was demanded and found.
	Signature *shipper.ChartSignature `json:"signature,omitempty"`
	// ValuesChanged are the keys of values that are not as in the Release before; the oldest has none.
	ValuesChanged []string `json:"valuesChanged,omitempty"`
	// Step is the index of the step that is asked for, StepName its name, LastStep the index of the last. Resources have one step, without
	// a name.
	Step     int    `json:"step"`
	StepName string `json:"stepName"`
	LastStep int    `json:"lastStep"`
	// State is complete of the newest that is, or contender, incumbent, superseded or retired.
	State string `json:"state"`
	// Outcome is as status.summary has it, RollbackOf the Release that it went back to, if it did.
	Outcome    shipper.ReleaseOutcome `json:"outcome"`
	RollbackOf string                 `json:"rollbackOf,omitempty"`
	// RequestedBy is whose edit made it, Override which blocks it overrides or did, and OverrideReason why.
	RequestedBy    string    `json:"requestedBy,omitempty"`
	Override       string    `json:"override,omitempty"`
	OverrideReason string    `json:"overrideReason,omitempty"`
	CreatedAt      time.Time `json:"createdAt"`
	// Duration is how long it took until it completed, as 4m10s; empty until then.
	Duration string `json:"duration,omitempty"`
}

// historyOf lists Releases, the newest first.
func historyOf(rels []*shipper.Release) []Past {
	var out []Past
	roles := strategy.Roles(rels)
	for i, rel := range slices.Backward(rels) {
		chart, sum, notes := rel.Spec.Environment.Chart, summary.Of(rels, i), rel.Annotations
		generation, _ := stamp.Generation(rel) // they were sorted by it
		state := string(roles[i])
		step := ""
		if s := rel.Spec.Environment.Strategy; s != nil && len(s.Steps) > 0 {
			step = stepName(rel, int(rel.Spec.TargetStep))
		}
		if roles[i] == strategy.Contender && strategy.Complete(rel) {
			state = "complete"
		}
		out = append(out, Past{
			Release: rel.Name, Generation: generation, Chart: chart.Name, Version: chart.Version,
			Digest: notes[shipper.ReleaseChartDigestAnnotation], ValuesChanged: summary.Changed(rels, i),
			Signature: rel.Signature(), Step: int(rel.Spec.TargetStep), LastStep: lastStep(rel),
			StepName: step, State: state, Outcome: sum.Outcome, RollbackOf: notes[shipper.ReleaseRollbackOfAnnotation],
			RequestedBy: notes[shipper.ReleaseRequestedByAnnotation], Override: sum.Override, OverrideReason: sum.OverrideReason,
			CreatedAt: rel.CreationTimestamp.Time, Duration: sum.Duration,
		})
	}
	return out
}

const (
	// maxKeys bounds, in characters, the changed values in a row for people, and shortDigest the digest.
	maxKeys, shortDigest = 60, 8
)

func table(rels []Past, width int, now time.Time) string {
	head := []string{"GEN", "RELEASE", "CHART", "CHANGED", "STEP", "STATE", "TOOK", "REQUESTED BY", "OVERRIDE", "AGE"}
	var rows [][]string
	for _, r := range rels {
		rows = append(rows, []string{
			strconv.Itoa(r.Generation), r.Release, r.of(), summary.Shorten(r.ValuesChanged, maxKeys), r.step(), r.what(), r.Duration,
			cmp.Or(r.RequestedBy, "unknown"), cmp.Or(printable.OneLine(r.OverrideReason), r.Override), age(r.CreatedAt, now),
		})
	}
	return screen.Table(width, head, rows)
}

// of is the chart that it was made of, with the beginning of the digest, or resources.
func (p Past) of() string {
	if p.Chart == "" {
		return "resources"
	}
	return strings.TrimSpace(p.Chart + " " + p.Version + " " + p.Digest[:min(len(p.Digest), shortDigest)])
}

// step is the step that is asked for; empty of a Release without steps.
func (p Past) step() string {
	if p.StepName == "" {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", p.Step, p.LastStep, p.StepName)
}

// what describes its state and outcome.
func (p Past) what() string {
	out := p.State
	if p.Outcome == shipper.ReleaseRolledBack {
		out += ", rolled back"
	}
	if p.RollbackOf != "" {
		out += ", back to " + p.RollbackOf
	}
	return out
}
