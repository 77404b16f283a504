// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// newAbort returns `rollout abort`.
func newAbort(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "abort APPLICATION",
		Short: "Give the newest release up: it is deleted, and the one before it comes back",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			rel := rels[len(rels)-1]
			if len(rels) == 1 {
				return fmt.Errorf("release %s is the only one: it would be made again; to take everything away, delete the application", rel.Name)
			}
			if err := abortable(rel); err != nil {
				return err
			}
			if err := c.Delete(cmd.Context(), rel, client.Preconditions{UID: &rel.UID}); err != nil {
				return fmt.Errorf("deleting release %s: %w", rel.Name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "release %s is given up, %s comes back\n", rel.Name, rels[len(rels)-2].Name)
			return nil
		},
	}
}

// abortable refuses a Release that is complete. An abort that was interrupted after it had deleted the newest Release, and is run
// again, would otherwise take the next one too.
func abortable(rel *shipper.Release) error {
	if strategy.Complete(rel) && rel.DeletionTimestamp.IsZero() {
		return fmt.Errorf("release %s is complete, nothing is being rolled out: to go back to an earlier one there is "+
			"`shipperctl rollout rollback`", rel.Name)
	}
	return nil
}

// newRollback returns `rollout rollback`.
func newRollback(o *options) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "rollback APPLICATION",
		Short: "Roll out what an earlier release was made of, through all steps",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, app, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			earlier, err := goal(rels, to)
			if err != nil {
				return err
			}
			key := client.ObjectKeyFromObject(app)
			if stamp.SameEnvironment(&app.Spec.Template, &earlier.Spec.Environment) {
				return fmt.Errorf("application %s has the environment of release %s already", key, earlier.Name)
			}
			patch, err := replace("/spec/template", earlier.Spec.Environment, "/metadata/generation", app.Generation)
			if err != nil {
				return err
			}
			if err := c.Patch(cmd.Context(), app, patch); err != nil {
				return fmt.Errorf("putting the environment of release %s back: %w", earlier.Name, outrun(err))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "application %s rolls out the environment of release %s, %s %s\n", key, earlier.Name,
				earlier.Spec.Environment.Chart.Name, earlier.Spec.Environment.Chart.Version)
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the release to go back to (default the newest complete one before the newest)")
	return cmd
}

// goal is the Release to go back to: the one of a name, or the newest before the newest that completed.
func goal(rels []*shipper.Release, name string) (*shipper.Release, error) {
	newest := rels[len(rels)-1]
	earlier := rels[:len(rels)-1]
	if rel := strategy.LastComplete(earlier); name == "" && rel != nil {
		return rel, nil
	}
	if i := slices.IndexFunc(earlier, func(rel *shipper.Release) bool { return rel.Name == name }); i >= 0 {
		return earlier[i], nil
	}
	switch name {
	case "":
		return nil, fmt.Errorf("no release before %s has completed: name one with --to, `shipperctl rollout history` lists them", newest.Name)
	case newest.Name:
		return nil, fmt.Errorf("release %s is the newest one", name)
	}
	return nil, fmt.Errorf("the application has no release %s: `shipperctl rollout history` lists those it has", name)
}
