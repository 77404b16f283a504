// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// newRollback returns `rollout rollback`.
func newRollback(o *options) *cobra.Command {
	var wanted wanted
	cmd := &cobra.Command{
		Use:   "rollback APPLICATION",
		Short: "Roll out what an earlier release was made of, through all steps or at once",
		Long: "Roll out what an earlier release was made of, through all steps or at once: spec.rollbackTo asks for it, and the webhook\n" +
			"judges it. What the newest release has already is not rolled out again; that is said, and no failure.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wanted.generation < 0 {
				return cli.WithCode(cli.Misused, fmt.Errorf("--to-generation is %d: generations are counted from 0", wanted.generation))
			}
			c, app, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			goal, err := wanted.goal(app, rels)
			if err != nil {
				return err
			}
			patch, err := set("/spec/rollbackTo", goal, "/metadata/generation", app.Generation)
			if err != nil {
				return err
			}
			if err := c.Patch(cmd.Context(), app, patch); err != nil {
				return fmt.Errorf("rolling application %s back: %w", client.ObjectKeyFromObject(app), outrun(err))
			}
			said, err := rolledBack(app, rels[len(rels)-1])
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&wanted.release, "to", "", "the release to go back to (default the newest complete one before the newest)")
	flags.Int64Var(&wanted.generation, "to-generation", 0,
		"the generation to go back to, as `rollout history` has it; 0 is the newest complete one before the newest")
	flags.BoolVar(&wanted.immediate, "immediate", false, "ask for the last step at once")
	cmd.MarkFlagsMutuallyExclusive("to", "to-generation")
	return cmd
}

// wanted is what the flags say of a rollback.
type wanted struct {
	release    string
	generation int64
	immediate  bool
}

// goal is what is asked of the Application. Where nothing is named, the Release that is meant is: asking for "the one before"
// twice could mean two Releases.
func (w wanted) goal(app *shipper.Application, rels []*shipper.Release) (shipper.RollbackTo, error) {
	to := shipper.RollbackTo{Release: w.release, Generation: w.generation}
	if w.immediate {
		to.Strategy = shipper.RollbackImmediate
	}
	if to.Release == "" && to.Generation == 0 {
		rel := strategy.Previous(rels, &app.Spec.Template)
		if rel == nil {
			return to, fmt.Errorf("no release before %s has completed: name one with --to, `shipperctl rollout history` lists them",
				rels[len(rels)-1].Name)
		}
		to.Release = rel.Name
	}
	return to, nil
}

// rolledBack says what came of a rollback: app is as it was stored, and newest its newest Release before.
func rolledBack(app *shipper.Application, newest *shipper.Release) (string, error) {
	key, env := client.ObjectKeyFromObject(app), &app.Spec.Template
	switch {
	case app.Spec.RollbackTo != nil:
		return "", fmt.Errorf("application %s is asked to roll back, and does not: the webhook did not see it; "+
			"`shipperctl doctor` says why, then take spec.rollbackTo out and run this again", key)
	case stamp.SameEnvironment(env, &newest.Spec.Environment):
		return fmt.Sprintf("application %s has that environment already, in release %s: nothing is rolled out", key, newest.Name), nil
	}
	return fmt.Sprintf("application %s rolls out the environment of release %s, %s %s", key,
		app.Annotations[shipper.AppRolledBackToAnnotation], env.Chart.Name, env.Chart.Version), nil
}
