// SPDX-License-Identifier: Apache-2.0

// Package notification is `shipperctl notification`: it has Shipper send a message that tests a Notification.
package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// interval is how often the status is read.
const interval = 200 * time.Millisecond

// NewCommand returns the commands about Notifications.
func NewCommand() *cobra.Command {
	flags := &cli.Flags{}
	cmd := cli.Group("notification", "Test where messages about releases go", newTest(flags))
	flags.RegisterDaily(cmd.PersistentFlags())
	return cmd
}

func newTest(flags *cli.Flags) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "test NOTIFICATION",
		Short: "Have Shipper send a test message, and say whether the server accepted it",
		Long: "Have Shipper send a test message, and say whether the server accepted it. The message is sent once. The right to patch the\n" +
			"notification is needed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckTimeout(timeout); err != nil {
				return err
			}
			c, namespace, err := flags.Client()
			if err != nil {
				return err
			}
			key := cli.ApplicationKey(namespace, args[0])
			if err := test(cmd.Context(), c, key, string(uuid.NewUUID()), timeout); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the server of notification %s accepted a test message\n", key)
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the result; the message is sent nonetheless")
	return cmd
}

// test requests a message, and waits for its result.
func test(ctx context.Context, c client.Client, key client.ObjectKey, request string, timeout time.Duration) error {
	n := &shipper.Notification{}
	if err := c.Get(ctx, key, n); err != nil {
		return fmt.Errorf("reading notification %s: %w", key, err)
	}
	if err := cli.Annotate(ctx, c, n, map[string]string{shipper.NotificationTestAnnotation: request}); err != nil {
		return fmt.Errorf("asking for a test of notification %s: %w", key, err)
	}
	over, err := cli.Await(ctx, c, key, n, interval, timeout, func() bool {
		return n.Status.Test != nil && n.Status.Test.Request == request
	})
	switch {
	case err != nil:
		return fmt.Errorf("reading notification %s: %w", key, err)
	case !over:
		return cli.WithCode(cli.TimedOut, fmt.Errorf("nothing is known of the test of notification %s after %s: does a reconciler run? "+
			"`shipperctl doctor` says so", key, timeout))
	case !n.Status.Test.Accepted:
		return errors.New("notification " + key.String() + ": " + n.Status.Test.Message)
	}
	return nil
}
