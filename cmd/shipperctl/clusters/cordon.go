// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// newCordon returns `clusters cordon`, or `clusters uncordon`.
func newCordon(o *options, on bool) *cobra.Command {
	use, short := "cordon NAME", "Place no new Releases on a cluster; those that are there stay"
	if !on {
		use, short = "uncordon NAME", "Place new Releases on a cluster again"
	}
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			_, err = cordon(cmd.Context(), c, cmd.OutOrStdout(), args[0], on)
			return err
		},
	}
}

// cordon makes a cluster unschedulable, or schedulable, and returns it. Nothing is written when it is so already.
func cordon(ctx context.Context, c client.Client, out io.Writer, name string, on bool) (*shipper.Cluster, error) {
	cluster := &shipper.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	is := "cordoned"
	if !on {
		is = "open for new Releases"
	}
	if cluster.Spec.Scheduler.Unschedulable == on {
		fmt.Fprintf(out, "cluster %s is %s already\n", name, is)
		return cluster, nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"scheduler":{"unschedulable":%t}}}`, on)
	if err := c.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, fmt.Errorf("changing cluster %s: %w", name, err)
	}
	fmt.Fprintf(out, "cluster %s is %s, until the next `clusters join` makes it what clusters.yaml says\n", name, is)
	return cluster, nil
}
