// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newSet(o *options) *cobra.Command {
	return cli.Group("set", "Change what an application runs", newSetImage(o))
}

func newSetImage(o *options) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "image APPLICATION CONTAINER=IMAGE...",
		Short: "Give containers other images, which makes a release",
		Long: "Give containers other images, which makes a release: the values of the application are edited, unless another user has edited\n" +
			"the application meanwhile. Admission judges that as any other edit.\n" +
			"\n" +
			"The values are containers.CONTAINER.image, as in the charts of `shipperctl convert`, or image.repository and image.tag for the\n" +
			"container with the name of the chart or of the application, or CONTAINER.image.repository and tag. Values that leave open\n" +
			"which container they are for are refused. The container * stands for all.",
		Example: "  shipperctl rollout set image shop web=registry.example.com/shop/web:1.5",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := parseImages(args[1:])
			if err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			return setImagesOf(cmd, c, cli.ApplicationKey(namespace, args[0]), wanted, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "have the API server and its admission judge the edit, and write nothing")
	return cmd
}

// setImagesOf edits the values of an Application, unless it has changed meanwhile.
func setImagesOf(cmd *cobra.Command, c client.Client, key client.ObjectKey, wanted []image, dryRun bool) error {
	app := &shipper.Application{}
	if err := c.Get(cmd.Context(), key, app); err != nil {
		return fmt.Errorf("reading application %s: %w", key, err)
	}
	values, changes, err := setImages(app, wanted)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "application %s has these images already: nothing is rolled out\n", key)
		return nil
	}
	patch, err := cli.PatchIf("/spec/template/values", values, "/metadata/generation", app.Generation)
	if err != nil {
		return err
	}
	var with []client.PatchOption
	ending := ""
	if dryRun {
		with, ending = append(with, client.DryRunAll), " (dry run: nothing is written)"
	}
	if err := c.Patch(cmd.Context(), app, patch, with...); err != nil {
		return fmt.Errorf("setting images of application %s: %w", key, explainConflict(err))
	}
	for _, one := range changes {
		fmt.Fprintf(cmd.OutOrStdout(), "application %s: %s is %s, was %s%s\n", key, one.path, one.to, one.from, ending)
		if theirs := keepingTheirs(app, one.path); len(theirs) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "Note: %s have their own %s, which is not changed\n", strings.Join(theirs, ", "), one.path)
		}
	}
	return nil
}
