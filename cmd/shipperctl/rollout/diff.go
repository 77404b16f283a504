// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// newDiff returns `rollout diff`.
func newDiff(o *options) *cobra.Command {
	var format cli.Format
	var drift bool
	cmd := &cobra.Command{
		Use:   "diff APPLICATION [FROM [TO]]",
		Short: "Show what changes from one release to another (default from the one before the newest to the newest)",
		Args:  cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if drift {
				return o.printDrift(cmd, args, format)
			}
			_, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			from, to, err := between(rels, args[1:])
			if err != nil {
				return err
			}
			text, err := difference(from, to)
			if err != nil {
				return err
			}
			found := Difference{
				From: from.Name, To: to.Name, Before: from.Spec.Environment, After: to.Spec.Environment, Diff: text,
			}
			return format.Print(cmd.OutOrStdout(), found, func() string {
				return cmp.Or(text, fmt.Sprintf("releases %s and %s have the same environment\n", from.Name, to.Name))
			})
		},
	}
	cmd.Flags().BoolVar(&drift, "drift", false, "show what differs in clusters from what was released, unless driftPolicy is Ignore")
	format.Register(cmd.Flags())
	return cmd
}

// Difference is between two Releases, in `-o json`.
type Difference struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Before and After are their environments.
	Before shipper.ReleaseEnvironment `json:"before"`
	After  shipper.ReleaseEnvironment `json:"after"`
	// Diff is as diff -u has it; empty when they are the same.
	Diff string `json:"diff"`
}

// between are the two Releases to be compared.
func between(rels []*shipper.Release, names []string) (from, to *shipper.Release, err error) {
	find := func(name string) (*shipper.Release, error) {
		for _, rel := range rels {
			if rel.Name == name {
				return rel, nil
			}
		}
		return nil, fmt.Errorf("the application has no release %s: `shipperctl rollout history` lists those it has", name)
	}
	to = rels[len(rels)-1]
	switch len(names) {
	case 0:
		if len(rels) < 2 {
			return nil, nil, fmt.Errorf("release %s is the only one", to.Name)
		}
		return rels[len(rels)-2], to, nil
	case 2:
		if to, err = find(names[1]); err != nil {
			return nil, nil, err
		}
	}
	from, err = find(names[0])
	return from, to, err
}

// difference is what changes in the environment, as diff -u has it; empty when nothing does.
func difference(from, to *shipper.Release) (string, error) {
	before, err := yaml.Marshal(from.Spec.Environment)
	if err != nil {
		return "", fmt.Errorf("writing the environment of %s: %w", from.Name, err)
	}
	after, err := yaml.Marshal(to.Spec.Environment)
	if err != nil {
		return "", fmt.Errorf("writing the environment of %s: %w", to.Name, err)
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)), FromFile: from.Name, ToFile: to.Name, Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("comparing %s with %s: %w", from.Name, to.Name, err)
	}
	return text, nil
}
