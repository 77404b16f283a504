// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newRetryChecks(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "retry-checks APPLICATION",
		Short: "Make the checks of the newest release's step again, from the beginning",
		Long: "Make the checks of the newest release's step again, from the beginning, with the Checks as they are now: an annotation of the\n" +
			"release gets a new value. That ends a check that is undecided, and a failure that nothing was done about.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			rel := rels[len(rels)-1]
			if err := checkable(rel); err != nil {
				return err
			}
			at := o.clock.Now().UTC().Format(time.RFC3339Nano)
			if err := cli.Annotate(cmd.Context(), c, rel, map[string]string{shipper.ReleaseChecksRetryAnnotation: at}); err != nil {
				return fmt.Errorf("asking for the checks of release %s: %w", rel.Name, err)
			}
			step := int(rel.Spec.TargetStep)
			fmt.Fprintf(cmd.OutOrStdout(), "release %s makes the checks of step %d (%s) again\n", rel.Name, step, stepName(rel, step))
			return nil
		},
	}
}

// checkable returns an error if no checks are made at the step that a Release is asked for.
func checkable(rel *shipper.Release) error {
	step := rel.Spec.TargetStep
	switch p := rel.Status.Progress; {
	case len(rel.Spec.Environment.Strategy.ChecksIn(position.Of(rel).Wave, step)) == 0:
		return fmt.Errorf("step %d (%s) of release %s has no checks", step, stepName(rel, int(step)), rel.Name)
	case p != nil && p.Step == step && p.MovedBack:
		return fmt.Errorf("release %s went back to step %d (%s), where nothing is checked: `shipperctl rollout advance` tries the next step "+
			"again", rel.Name, step, stepName(rel, int(step)))
	}
	return nil
}
