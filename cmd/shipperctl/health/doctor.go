// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// NewCommand returns `doctor`.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &cli.Flags{}
	var account string
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is broken in the management cluster and in all clusters that are joined to it",
		Long: "Look for what is broken in the management cluster and in all clusters that are joined to it: versions, kinds, rights,\n" +
			"webhooks and their certificate, the second line, Shipper's Pods, its reconciler, and each cluster as `clusters check` does.\n" +
			"It calls the webhooks through the API server by dry-run creates of each kind. Nothing is written.\n" +
			"It exits with 1 when something is broken, and with 0 when there are warnings at most.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := o.Management()
			if err != nil {
				return err
			}
			fleet, err := newFleet(config)
			if err != nil {
				return err
			}
			fleet.Namespace, fleet.ServiceAccount, fleet.Clock = o.Namespace, account, clock
			found := Sum(fleet.Examine(cmd.Context()))
			err = format.Print(cmd.OutOrStdout(), found, func() string {
				width, _ := screen.Of(cmd.OutOrStdout())
				text := found.Text(width)
				if found.Broken == 0 {
					text += "nothing is broken\n"
				}
				return text
			})
			if err == nil && found.Broken > 0 {
				err = fmt.Errorf("%d broken", found.Broken)
			}
			return err
		},
	}
	o.Register(cmd.Flags())
	format.Register(cmd.Flags())
	cmd.Flags().StringVar(&account, "management-cluster-service-account", shipper.ManagementServiceAccount,
		"name of the service account Shipper uses in the management cluster")
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	return cmd
}

// newFleet makes the clients of a management cluster.
func newFleet(config *rest.Config) (*Fleet, error) {
	reader, err := cli.NewClient(config, clientgoscheme.AddToScheme, certmanagerv1.AddToScheme, shipper.AddToScheme)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	a, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return &Fleet{Reader: reader, Writer: reader, Discovery: d, Authorization: a}, nil
}
