// SPDX-License-Identifier: Apache-2.0

// Package placement is `shipperctl placement`: it says on which clusters an Application is placed, and why, by the code of Shipper.
package placement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type options struct {
	cli.Flags
	clock clock.PassiveClock
	// unhealthyAfter is how long a cluster may be not ready and still be chosen.
	unhealthyAfter time.Duration
	format         cli.Format
}

// NewCommand returns `placement` with its sub-command, which asks c for the time.
func NewCommand(c clock.PassiveClock) *cobra.Command {
	o := &options{clock: c}
	cmd := cli.Group("placement", "See on which clusters applications are placed, and why", newExplain(o))
	flags := cmd.PersistentFlags()
	o.RegisterDaily(flags)
	flags.DurationVar(&o.unhealthyAfter, "unhealthy-after", placement.DefaultUnhealthyAfter,
		"time that a cluster may be not ready and still be chosen by placements, as Shipper has it")
	o.format.Register(flags)
	return cmd
}

func newExplain(o *options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "explain [APPLICATION]",
		Short: "Say of each cluster whether an application is placed there, and why: one in the management cluster, or in a file",
		Long: "Say of each cluster whether an application is placed there, and why: one in the management cluster, or in a file. Clusters\n" +
			"are judged as they are now, and as Shipper judges them for the next Release: those that the newest Release has are kept while\n" +
			"the placement stays the same. Nothing is written.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (file != "") {
				return cli.WithCode(cli.Misused, errors.New("name an application, or a file with --file, and not both"))
			}
			if err := placement.CheckUnhealthyAfter(o.unhealthyAfter); err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			var apps []*shipper.Application
			if file != "" {
				apps, err = readApplications(cmd.InOrStdin(), file, namespace)
			} else {
				key := cli.ApplicationKey(namespace, args[0])
				apps = []*shipper.Application{{}}
				apps[0].Namespace, apps[0].Name = key.Namespace, key.Name
			}
			if err != nil {
				return err
			}
			out, err := o.explain(cmd.Context(), c, apps, file != "")
			if err != nil {
				return err
			}
			return o.format.Print(cmd.OutOrStdout(), out, func(width int) string { return text(out, width) })
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "manifest of the application, also as --filename; - is standard input")
	return cmd
}

// readApplications reads the Applications in a file, and refuses those whose requirements the webhook would refuse.
func readApplications(in io.Reader, file, namespace string) ([]*shipper.Application, error) {
	found, err := cli.ReadManifest(in, file, namespace)
	if err != nil {
		return nil, err
	}
	path := field.NewPath("spec", "template", "clusterRequirements")
	out := make([]*shipper.Application, len(found))
	for i, one := range found {
		app := &shipper.Application{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(one.Object, app, true); err != nil {
			return nil, cli.WithCode(cli.Refused, fmt.Errorf("reading application %s/%s: %w", one.GetNamespace(), one.GetName(), err))
		}
		if err := validate(app.Spec.Template.ClusterRequirements, path).ToAggregate(); err != nil {
			return nil, cli.WithCode(cli.Refused, fmt.Errorf("application %s/%s would be refused: %w", app.Namespace, app.Name, err))
		}
		out[i] = app
	}
	return out, nil
}

func validate(r shipper.ClusterRequirements, path *field.Path) field.ErrorList {
	if errs := placement.ValidateChoice(r, path); len(errs) > 0 {
		return errs
	}
	return placement.Validate(r.Placement, path.Child("placement"))
}

// explain judges all clusters for each Application: for its template in the management cluster or, if given, for that in apps.
func (o *options) explain(ctx context.Context, c client.Reader, apps []*shipper.Application, given bool) ([]explained, error) {
	var clusters shipper.ClusterList
	if err := c.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]explained, 0, len(apps))
	for _, app := range apps {
		live, releases, err := cli.ReadApplication(ctx, c, client.ObjectKeyFromObject(app))
		switch {
		case apierrors.IsNotFound(err) && given:
		case err != nil:
			return nil, err
		case !given:
			app = live
		}
		out = append(out, o.judge(app, releases, clusters.Items))
	}
	return out, nil
}
