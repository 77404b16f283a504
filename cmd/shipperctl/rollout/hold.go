// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// maxReason bounds a reason, in characters, as the schema does.
const maxReason = 256

// checkReason refuses a --reason that is longer than objects have room for.
func checkReason(reason string) error {
	if n := len([]rune(reason)); n > maxReason {
		return cli.WithCode(cli.Misused, fmt.Errorf("--reason has %d characters: %d are the most", n, maxReason))
	}
	return nil
}

func newPause(o *options) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause APPLICATION --reason REASON",
		Short: "Keep Shipper from advancing or retreating the newest release",
		Long: "Keep Shipper from advancing or retreating the newest release: spec.hold gets the reason. Earlier requests are still carried\n" +
			"out, and you may advance and retreat the release. With waves no further cluster begins until resume, and those that are\n" +
			"changing finish. A new release is not held.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return cli.WithCode(cli.Misused, errors.New("--reason is missing: say why, others will read it"))
			}
			if err := checkReason(reason); err != nil {
				return err
			}
			return o.setHold(cmd, args[0], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

func newResume(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "resume APPLICATION",
		Short: "Let Shipper advance and retreat a release that was paused",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.setHold(cmd, args[0], "") },
	}
}

// setHold sets spec.hold of an Application's newest Release, unless another user has moved the Release meanwhile.
func (o *options) setHold(cmd *cobra.Command, app, reason string) error {
	c, _, rels, err := o.read(cmd.Context(), app)
	if err != nil {
		return err
	}
	rel := rels[len(rels)-1]
	switch {
	case reason == "" && rel.Spec.Hold == "":
		return fmt.Errorf("release %s is not paused", rel.Name)
	case reason != "" && !strategy.ByItself(rel.Spec.Environment.Strategy):
		return fmt.Errorf("release %s does nothing by itself: its strategy has none of after, gate, checks, progressDeadline and onFailure",
			rel.Name)
	}
	var hold any // nil removes it
	if reason != "" {
		hold = reason
	}
	patch, err := cli.PatchIf("/spec/hold", hold, "/metadata/generation", rel.Generation) // the status may change meanwhile
	if err != nil {
		return err
	}
	if err := c.Patch(cmd.Context(), rel, patch); err != nil {
		return fmt.Errorf("writing the hold of release %s: %w", rel.Name, explainConflict(err))
	}
	rel.Spec.Hold = reason
	fmt.Fprintln(cmd.OutOrStdout(), heldOrNot(rel))
	return nil
}

func heldOrNot(rel *shipper.Release) string {
	if rel.Spec.Hold == "" {
		return fmt.Sprintf("release %s is resumed", rel.Name)
	}
	return fmt.Sprintf("release %s is held: %s", rel.Name, rel.Spec.Hold)
}
