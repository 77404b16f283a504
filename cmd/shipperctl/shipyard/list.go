// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// filter selects runs; empty parts select all.
type filter struct{ shipyard, stage, service string }

func newList(o *options) *cobra.Command {
	var all bool
	var of filter
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the newest first: what they deliver, what they do, and where they are in the queue",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && o.Namespace != "" {
				return cli.WithCode(cli.Misused, errors.New("--all-namespaces excludes --namespace"))
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			if all {
				namespace = ""
			}
			var list shipper.SequenceRunList
			if err := c.List(cmd.Context(), &list, client.InNamespace(namespace)); err != nil {
				return fmt.Errorf("listing runs: %w", err)
			}
			found := listed(list.Items, of, o.clock.Now())
			return format.Print(cmd.OutOrStdout(), found, func(width int) string { return table(found, all, width, o.clock.Now()) })
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "the runs of all namespaces")
	cmd.Flags().StringVar(&of.shipyard, "shipyard", "", "only runs of this Shipyard")
	cmd.Flags().StringVar(&of.stage, "stage", "", "only runs of this stage")
	cmd.Flags().StringVar(&of.service, "service", "", "only runs of this service")
	format.Register(cmd.Flags())
	return cmd
}

// listedRun is a run as it is listed, also by `-o json`.
type listedRun struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Shipyard  string `json:"shipyard"`
	Stage     string `json:"stage"`
	Sequence  string `json:"sequence"`
	Service   string `json:"service"`
	Version   string `json:"version,omitempty"`
	// State is what the run does, or how it ended; Position counts the runs ahead in the line.
	State     string    `json:"state"`
	Position  int       `json:"position,omitempty"`
	Task      string    `json:"task,omitempty"`
	Result    string    `json:"result,omitempty"`
	By        string    `json:"by,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// Unanswered says that the reconciler does not look at the run; empty while it does.
	Unanswered string `json:"unanswered,omitempty"`
}

// listed are the runs that a filter selects, the newest first.
func listed(runs []shipper.SequenceRun, of filter, now time.Time) []listedRun {
	inNamespace := map[string]map[string]*shipper.SequenceRun{}
	for i := range runs {
		run := &runs[i]
		if inNamespace[run.Namespace] == nil {
			inNamespace[run.Namespace] = map[string]*shipper.SequenceRun{}
		}
		inNamespace[run.Namespace][run.Name] = run
	}
	out := []listedRun{}
	for i := range runs {
		run := &runs[i]
		if of.shipyard != "" && run.Spec.Shipyard != of.shipyard || of.stage != "" && run.Spec.Stage != of.stage ||
			of.service != "" && run.Spec.Service != of.service {
			continue
		}
		one := listedRun{
			Namespace: run.Namespace, Name: run.Name, Shipyard: run.Spec.Shipyard, Stage: run.Spec.Stage, Sequence: run.Spec.Sequence,
			Service: run.Spec.Service, Version: rules.VersionOf(run).Version, State: stateOf(run),
			Position: position(run, inNamespace[run.Namespace]),
			Task:     run.Status.Task, Result: string(run.Status.Result), By: run.Spec.RequestedBy.Username, CreatedAt: run.CreationTimestamp.Time,
		}
		if !isFinished(run) {
			one.Unanswered = cli.Unanswered(run, run.Status.ObservedGeneration, now)
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b listedRun) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func table(runs []listedRun, all bool, width int, now time.Time) string {
	if len(runs) == 0 {
		return "there are no runs\n"
	}
	var rows [][]string
	for i := range runs {
		run := &runs[i]
		name, state := run.Name, run.State
		if all {
			name = run.Namespace + "/" + name
		}
		if run.Position > 0 && run.Result == "" {
			state += fmt.Sprintf(" at %d", run.Position)
		}
		if run.Unanswered != "" {
			state += " (the reconciler does not answer)"
		}
		rows = append(rows, []string{
			name, run.Stage, run.Sequence, run.Service, run.Version, state, run.Task, run.Result, run.By, age(run.CreatedAt, now),
		})
	}
	head := []string{"RUN", "STAGE", "SEQUENCE", "SERVICE", "VERSION", "STATE", "TASK", "RESULT", "BY", "AGE"}
	return screen.Table(width, head, rows)
}
