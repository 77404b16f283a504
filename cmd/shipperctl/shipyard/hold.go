// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/printable"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func newPause(o *options) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause RUN --reason REASON",
		Short: "Keep a run from beginning its next task",
		Long: "Keep a run from beginning its next task: spec.hold gets the reason. The task under way goes on to its end. " +
			"Time-outs do not count meanwhile.\nA run that has not started leaves the queue.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason("reason", reason); err != nil {
				return err
			}
			return o.change(cmd, args[0], func(run *shipper.SequenceRun) (string, error) {
				run.Spec.Hold = reason
				return fmt.Sprintf("run %s is paused: %s", run.Name, reason), nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

func newResume(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "resume RUN",
		Short: "Let a run that was paused go on",
		Long:  "Let a run that was paused go on. It takes the verb promote, as starting a run does.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, args[0], func(run *shipper.SequenceRun) (string, error) {
				if run.Spec.Hold == "" {
					return "", fmt.Errorf("run %s is not paused", run.Name)
				}
				run.Spec.Hold = ""
				return fmt.Sprintf("run %s goes on", run.Name), nil
			})
		},
	}
}

func newAbort(o *options) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "abort RUN --reason REASON",
		Short: "End a run now",
		Long: "End a run now, with the result fail and the completion aborted. It cannot be undone. The Release stays: if the run held it\n" +
			"for a task release, it keeps that hold, else steps with after go on. Runs that follow from failures are not created\n" +
			"unless their selector names status: aborted.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason("reason", reason); err != nil {
				return err
			}
			return o.change(cmd, args[0], func(run *shipper.SequenceRun) (string, error) {
				if run.Spec.Abort != "" {
					return "", fmt.Errorf("run %s is aborted already: %s", run.Name, printable.OneLine(run.Spec.Abort))
				}
				run.Spec.Abort = reason
				return fmt.Sprintf("run %s is aborted: %s", run.Name, reason), nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

// change edits a run that is not finished, and prints what was done.
func (o *options) change(cmd *cobra.Command, arg string, edit func(*shipper.SequenceRun) (string, error)) error {
	c, run, err := o.readRun(cmd.Context(), arg)
	if err != nil {
		return err
	}
	if isFinished(run) {
		return fmt.Errorf("run %s is finished: %s", run.Name, stateOf(run))
	}
	was := run.DeepCopy()
	done, err := edit(run)
	if err != nil {
		return err
	}
	if err := c.Patch(cmd.Context(), run, client.MergeFrom(was)); err != nil {
		return fmt.Errorf("writing run %s: %w", run.Name, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), done)
	return nil
}
