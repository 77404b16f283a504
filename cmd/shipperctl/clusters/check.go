// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// newCheck returns `clusters check`.
func newCheck(o *options) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Tell whether Shipper can use a cluster: credentials, rights and version",
		Long: "Tell whether Shipper can use a cluster. It is asked from here, with the address and the credentials that the management\n" +
			"cluster has for it. Nothing is written.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			cluster := &shipper.Cluster{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Name: args[0]}, cluster); err != nil {
				return fmt.Errorf("reading cluster %s: %w", args[0], err)
			}
			findings, version := health.Cluster(cmd.Context(), c, o.Namespace, cluster, o.clock.Now())
			title := "cluster " + cluster.Name
			if version != "" {
				title += " (" + version + ")"
			}
			found := health.Sum([]health.Check{{Title: title, Findings: findings}})
			err = format.Print(cmd.OutOrStdout(), found, func() string {
				width, _ := screen.Of(cmd.OutOrStdout())
				return found.Text(width)
			})
			if err == nil && found.Broken > 0 {
				err = fmt.Errorf("cluster %s cannot be used: %d broken", cluster.Name, found.Broken)
			}
			return err
		},
	}
	format.Register(cmd.Flags())
	return cmd
}
