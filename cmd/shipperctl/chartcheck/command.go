// SPDX-License-Identifier: Apache-2.0

// Package chartcheck prints what Shipper does with a chart, from the chart alone: `shipperctl chart check`. Package root does not add the
// command yet, because the reconciler does not install charts by Application.
package chartcheck

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// NewCommand returns `check`.
func NewCommand() *cobra.Command {
	var files []string
	var app, namespace string
	var grants bool
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "check CHART",
		Short: "Show what Shipper does with a chart, without a cluster: each workload, each Service, copies, hooks and rights",
		Long: "Show what Shipper does with a chart: which workloads run side by side, which change in place and why, which Services\n" +
			"move, what is copied for each Release, which hooks run, which rights it takes, and what is refused, with what to do.\n" +
			"CHART is a folder, or an archive as `helm package` makes it. No cluster is asked: the chart is rendered as for a first\n" +
			"installation on a recent version of Kubernetes. Fails if something is refused.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(args[0])
			if err != nil {
				return err
			}
			given, err := read(files)
			if err != nil {
				return err
			}
			if app == "" {
				app = c.Name()
			}
			if bad := validation.IsDNS1123Label(app); len(bad) > 0 {
				return cli.WithCode(cli.Misused, fmt.Errorf("--app-name: %q cannot be the name of an Application: %s", app, bad[0]))
			}
			report, err := ReportOf(cmd.Context(), c, given, app, namespace)
			if err != nil {
				return err
			}
			if grants {
				text, err := grant(c.Name(), report.Rights)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			err = format.Print(cmd.OutOrStdout(), report, report.Text)
			if len(report.Refused) > 0 {
				err = errors.Join(err, fmt.Errorf("chart %s %s cannot be rolled out as it is", report.Chart, report.Version))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&files, "values", "f", nil, "file with values; of several, later ones win")
	flags.StringVar(&app, "app-name", "", "name of the Application, which templates see as the release (default the chart's name)")
	flags.StringVarP(&namespace, "namespace", "n", "default", "namespace of the Application")
	flags.BoolVar(&grants, "grant", false, "print only the ClusterRole with the rights that Shipper lacks in an application cluster")
	format.Register(flags)
	return cmd
}

// open loads a chart from a folder or an archive. A folder is packed first, as `helm package` does.
func open(path string) (*render.Chart, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	if info.IsDir() {
		c, err := loader.LoadDir(path)
		if err != nil {
			return nil, fmt.Errorf("reading the chart: %w", err)
		}
		folder, err := os.MkdirTemp("", "shipperctl-")
		if err != nil {
			return nil, fmt.Errorf("packing the chart: %w", err)
		}
		defer os.RemoveAll(folder) //nolint:errcheck // a folder of temporary files
		if path, err = chartutil.Save(c, folder); err != nil {
			return nil, fmt.Errorf("packing the chart: %w", err)
		}
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return render.Open(archive)
}

// read merges files with values, as Helm does.
func read(files []string) (*shipper.ChartValues, error) {
	merged := &shipper.ChartValues{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading values: %w", err)
		}
		asJSON, err := yaml.YAMLToJSON(raw)
		over := map[string]any{}
		if err == nil {
			err = json.Unmarshal(asJSON, &over) // into integers where they are such, as the API server does
		}
		if err != nil {
			return nil, fmt.Errorf("reading values from %s: %w", file, err)
		}
		given := shipper.ChartValues(over)
		if merged, err = (values.Layers{Base: *merged, Common: &given}).At(values.Place{}); err != nil {
			return nil, fmt.Errorf("merging values from %s: %w", file, err)
		}
	}
	return merged, nil
}
