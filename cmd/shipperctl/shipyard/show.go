// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newShow(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "show SHIPYARD",
		Short: "Show a Shipyard: its stages and sequences, what triggers them, and the versions that passed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			of := &shipper.Shipyard{}
			key := keyOf(namespace, args[0], shipyardKinds)
			if err := c.Get(cmd.Context(), key, of); err != nil {
				return fmt.Errorf("reading shipyard %s: %w", key, err)
			}
			var runs shipper.SequenceRunList
			err = c.List(cmd.Context(), &runs, client.InNamespace(of.Namespace), client.MatchingLabels{shipper.ShipyardLabel: of.Name})
			if err != nil {
				return fmt.Errorf("listing the runs of shipyard %s: %w", key, err)
			}
			width, _ := screen.Of(cmd.OutOrStdout())
			fmt.Fprint(cmd.OutOrStdout(), describe(of, runs.Items, width, o.clock.Now()))
			return nil
		},
	}
}

// describe formats a Shipyard for people.
func describe(of *shipper.Shipyard, runs []shipper.SequenceRun, width int, now time.Time) string {
	var out strings.Builder
	line := func(label, text string) {
		if text != "" {
			out.WriteString(screen.Hang(fmt.Sprintf("%-10s ", label), text, width))
		}
	}
	line("shipyard", of.Namespace+"/"+of.Name)
	line("services", cmp.Or(strings.Join(of.Spec.Services, ", "), "any"))
	line("runs as", cmp.Or(of.Spec.ServiceAccountName, shipper.DefaultRunner))
	var rows [][]string
	for i := range of.Spec.Stages {
		stage := &of.Spec.Stages[i]
		name, apps := stage.Name, cmp.Or(stage.Namespace, of.Namespace)+"/"+rules.ApplicationOf(stage, of.Name, "{service}")
		if len(stage.Sequences) == 0 {
			rows = append(rows, []string{name, apps, "", "", "", requires(stage)})
		}
		for j := range stage.Sequences {
			sequence := &stage.Sequences[j]
			var tasks, on []string
			for k := range sequence.Tasks {
				tasks = append(tasks, sequence.Tasks[k].Name)
			}
			for _, t := range sequence.TriggeredOn {
				on = append(on, trigger(t))
			}
			rows = append(rows, []string{
				name, apps, sequence.Name, strings.Join(tasks, ", "), cmp.Or(strings.Join(on, "; "), "users"), requires(stage),
			})
			name, apps = "", ""
		}
	}
	out.WriteString(screen.Table(width, []string{"STAGE", "APPLICATIONS", "SEQUENCE", "TASKS", "STARTED BY", "REQUIRES"}, rows))
	if rows := verified(runs, now); len(rows) > 0 {
		out.WriteString("\n" + screen.Table(width, []string{"STAGE", "SERVICE", "PASSED", "RUN", "AGE"}, rows))
	}
	return out.String()
}

func requires(stage *shipper.Stage) string {
	var out []string
	for _, r := range stage.Requires {
		text := r.Stage
		if r.Sequence != "" {
			text += "." + r.Sequence
		}
		if r.Soak != "" {
			text += " for " + string(r.Soak)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func trigger(t shipper.Trigger) string {
	if t.Selector == nil {
		return t.Event
	}
	var match []string
	for _, key := range slices.Sorted(maps.Keys(t.Selector.Match)) {
		match = append(match, key+" "+t.Selector.Match[key])
	}
	return t.Event + " with " + strings.Join(match, ", ")
}

// verified are the runs that passed with a version and count for other stages, the newest first and each version of a stage once.
func verified(runs []shipper.SequenceRun, now time.Time) [][]string {
	known := make([]*shipper.SequenceRun, len(runs))
	for i := range runs {
		known[i] = &runs[i]
	}
	passed := slices.DeleteFunc(slices.Clone(runs), func(run shipper.SequenceRun) bool {
		return run.Status.Result != shipper.ResultPass || run.Status.FinishTime == nil || rules.VersionOf(&run).Version == "" ||
			rules.EndedBy(&run, known) != nil
	})
	slices.SortFunc(passed, func(a, b shipper.SequenceRun) int {
		return cmp.Or(b.Status.FinishTime.Compare(a.Status.FinishTime.Time), cmp.Compare(a.Name, b.Name))
	})
	var rows [][]string
	seen := map[[3]string]bool{}
	for i := range passed {
		run := &passed[i]
		key := [3]string{run.Spec.Stage, run.Spec.Service, rules.VersionOf(run).Version}
		if !seen[key] {
			seen[key] = true
			rows = append(rows, []string{key[0], key[1], key[2], run.Name, age(run.Status.FinishTime.Time, now)})
		}
	}
	return rows
}
