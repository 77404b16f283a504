// SPDX-License-Identifier: Apache-2.0

// Package convert has `shipperctl convert`, which makes Applications, Checks, Clusters, Envelopes and Shipyards from the objects of other
// tools: Rollouts and templates of analyses of Argo, Canaries and templates of metrics of Flagger, placements, clusters and envelopes of
// KubeFleet, and shipyard files of Keptn. It only reads and writes text, and reaches no cluster.
package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"shipper.dev/shipper/apis/rules/printable"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type options struct {
	settings
	files     []string
	recursive bool
	chartDir  string
	accept    bool
}

// NewCommand returns `convert`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE [-f FILE]...",
		Short: "Convert manifests of Argo Rollouts, Flagger, KubeFleet and Keptn to Applications, Checks and Shipyards",
		Long: "Convert Argo Rollouts to Applications. The files have Rollouts and, if possible, their Services and AnalysisTemplates. Each\n" +
			"Rollout becomes an Application with a chart that has the Pod template and the Services. Each metric of an AnalysisTemplate or\n" +
			"ClusterAnalysisTemplate becomes a Check. All are printed; no cluster is asked.\n" +
			"\n" +
			"Of Flagger, each Canary becomes an Application, made with the Deployment that it names: put both into the input. Each\n" +
			"MetricTemplate, and each webhook that decides, becomes a Check.\n" +
			"\n" +
			"Of KubeFleet, each MemberCluster becomes a Cluster, each ClusterResourcePlacement or ResourcePlacement an Application with\n" +
			"resources and with the waves of its staged run, each override a ResourceOverride, and each envelope an Envelope.\n" +
			"\n" +
			"Of Keptn, each shipyard file, of 0.1.x or 0.2, becomes a Shipyard. Files of remediations, SLIs and SLOs are listed.\n" +
			"\n" +
			"Fields without a counterpart are listed in comments (`# review:`) above the object, and on standard error. An object that\n" +
			"cannot be converted is an error with its file and line (`a.yaml:12`), and the others are converted all the same. The exit\n" +
			"code is 0 if nothing behaves differently, 3 if a person has to review, and 1 if the input is wrong. `--accept` turns 3 into 0.",
		Example: "  shipperctl convert -f rollout.yaml -f services.yaml --region eu-west > app.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "file", "f", nil, "YAML or JSON with Rollouts or Canaries, their Services, and templates, with objects "+
		"of KubeFleet, or a shipyard of Keptn, also as --filename: a file, a folder with .json, .yaml and .yml, or - for standard input; "+
		"give it again for more")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "read the folders in the folders of --file, too")
	flags.StringArrayVar(&o.regions, "region", nil, "a region to run in, or that of MemberClusters whose labels have none; give it again for "+
		"more (default a placeholder to replace)")
	flags.StringVarP(&o.namespace, "namespace", "n", defaultHome, "namespace of what is made of objects of KubeFleet without a namespace; an "+
		"Application whose placement selects one Namespace by name is there. Also that of Shipyards, if it is given")
	flags.StringVar(&o.shipyard, "name", "", "name of the Shipyard made of a shipyard file without metadata.name: that of Keptn's project")
	flags.StringVar(&o.chartDir, "chart-dir", "", "write each chart to a folder below this one (default the Application has its chart)")
	flags.StringVar(&o.repository, "repo-url", "", "URL of the repository that you push the charts of --chart-dir to")
	flags.BoolVar(&o.accept, "accept", false, "exit with 0 even if a person has to review something")
	return cmd
}

func (o *options) run(cmd *cobra.Command) error {
	o.apart = o.chartDir != ""
	if cmd.Flags().Changed("namespace") {
		o.shipyards = o.namespace
	}
	switch {
	case len(o.files) == 0:
		return cli.WithCode(cli.Misused, errors.New("name a file with --file; - is standard input"))
	case o.repository != "" && !o.apart:
		return cli.WithCode(cli.Misused, errors.New("--repo-url is for charts in a folder: give --chart-dir as well"))
	case slices.Contains(o.regions, ""):
		return cli.WithCode(cli.Misused, errors.New("--region is empty: name a region"))
	case o.shipyard != "" && len(validation.IsDNS1123Subdomain(o.shipyard))+len(validation.IsValidLabelValue(o.shipyard)) > 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--name: %q is no name of a Shipyard: use at most 63 lower-case letters, digits, dots "+
			"and dashes", o.shipyard))
	case len(validation.IsDNS1123Label(o.namespace)) > 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--namespace: %q is no name of a namespace", o.namespace))
	}
	inputs, err := o.inputs(cmd.InOrStdin())
	if err != nil {
		return err
	}
	out := convertAll(cmd.Context(), inputs, o.settings)
	text, err := out.print()
	if err != nil {
		return err
	}
	if o.apart {
		if err := out.writeCharts(o.chartDir); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return o.conclude(cmd.ErrOrStderr(), out)
}

// conclude writes what failed and what is to be reviewed, and returns the error that has the exit code.
func (o *options) conclude(to io.Writer, out result) error {
	for _, err := range out.failed {
		fmt.Fprintln(to, "error: "+printable.OneLine(err.Error()))
	}
	reviews := out.reviews()
	for _, review := range reviews {
		fmt.Fprintln(to, "review: "+printable.OneLine(review))
	}
	switch {
	case len(out.failed) > 0 && out.empty():
		return errors.New("nothing is converted: the errors are listed above")
	case len(out.failed) > 0:
		return fmt.Errorf("not all of the %d objects are converted: the errors are listed above (%d); what is printed has the others",
			out.objects, len(out.failed))
	case len(reviews) > 0 && !o.accept:
		return cli.WithCode(cli.ToReview, fmt.Errorf("not everything could be converted: review what is listed above (%d); "+
			"with --accept this is no error", len(reviews)))
	}
	return nil
}

// writeCharts writes each chart to a new folder in dir.
func (r result) writeCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the charts: %w", err)
	}
	for _, one := range r.all {
		folder := filepath.Join(dir, one.app.Name)
		if err := os.Mkdir(folder, 0o755); errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("writing the chart of %s: %s is there already: delete it, or name another --chart-dir", one.app.Name, folder)
		} else if err != nil {
			return fmt.Errorf("writing the chart of %s: %w", one.app.Name, err)
		}
		if err := os.Mkdir(filepath.Join(folder, "templates"), 0o755); err != nil {
			return fmt.Errorf("writing the chart of %s: %w", one.app.Name, err)
		}
		for _, path := range slices.Sorted(maps.Keys(one.chart)) {
			if err := os.WriteFile(filepath.Join(folder, path), []byte(one.chart[path]), 0o644); err != nil {
				return fmt.Errorf("writing the chart of %s: %w", one.app.Name, err)
			}
		}
	}
	return nil
}
