// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"errors"

	"github.com/spf13/cobra"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

// newSetupManagement returns `clusters setup management`.
func newSetupManagement(o *options) *cobra.Command {
	var globalBlocks, serviceAccount, webhookURL, certificates string
	cmd := &cobra.Command{
		Use:   "management",
		Short: "Set up the management cluster: kinds, namespaces, account, rights, webhooks",
		Long: "Set up the management cluster: kinds, namespaces, account, rights, webhooks. Of an installation that is there already,\n" +
			"what no flag names stays as it is: namespace, account, namespace of global blocks, URL, CA bundle and failurePolicy of the\n" +
			"webhooks. The Deployment is not touched.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := install.ParseWebhookURL(webhookURL)
			mode, wrong := install.ParseCertificates(certificates)
			if err = errors.Join(err, wrong); err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			config, err := o.Management()
			if err != nil {
				return err
			}
			client, err := install.NewClient(config)
			if err != nil {
				return err
			}
			m := install.Management{
				Client:                client,
				Report:                install.NewReport(cmd.OutOrStdout()),
				Namespace:             o.Namespace,
				GlobalBlocksNamespace: globalBlocks,
				ServiceAccount:        serviceAccount,
				WebhookURL:            url,
				Certificates:          mode,
				WebhookIgnore:         o.webhookIgnore,
				Patience:              o.timeout,
				Clock:                 o.clock,
			}
			named := cmd.Flags().Changed
			err = m.KeepInstalled(cmd.Context(), install.Named{
				Namespace: named("namespace"), ServiceAccount: named("management-cluster-service-account"),
				GlobalBlocksNamespace: named("rollout-blocks-global-namespace"), WebhookURL: named("webhook-url"),
			})
			if err != nil {
				return err
			}
			return m.Setup(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&globalBlocks, "rollout-blocks-global-namespace", "g", shipper.GlobalBlocksNamespace,
		"namespace whose RolloutBlocks stop rollouts in every namespace")
	flags.StringVar(&serviceAccount, "management-cluster-service-account", shipper.ManagementServiceAccount,
		"name of the service account Shipper uses in the management cluster")
	flags.StringVar(&webhookURL, "webhook-url", "",
		"base URL of a webhook that runs outside the cluster, for example https://localhost:9443; no Service is made. "+
			"An empty one means the Service again (default that of the installation)")
	flags.StringVar(&certificates, "certificates", "",
		"where the webhook's certificate comes from: self, made by the webhook, or cert-manager, whose Issuers and Certificates are "+
			"created and awaited. Empty: nothing of it is changed")
	return cmd
}
