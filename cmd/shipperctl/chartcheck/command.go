// SPDX-License-Identifier: Apache-2.0

// Package chartcheck prints what Shipper does with a chart, from the chart alone: `shipperctl chart check`.
package chartcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/outward"
)

type options struct {
	from           source
	values         []string
	app, namespace string
	grant          bool
	format         cli.Format
}

// NewCommand returns `check`.
func NewCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "check CHART [--repo URL]",
		Short: "Show what Shipper does with a chart, without a cluster: each workload, each Service, copies, hooks and rights",
		Long: "Show what Shipper does with a chart: which workloads run side by side, which change in place and why, which Services\n" +
			"move, what is copied for each Release, which hooks run, which rights it takes, and what is refused, with what to do.\n" +
			"CHART is a folder, an archive as `helm package` makes it, or with --repo the name of a chart in a repository. No\n" +
			"cluster is asked: the chart is rendered as for a first installation on a recent version of Kubernetes. Fails if\n" +
			"something is refused.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd.OutOrStdout(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.values, "values", "f", nil, "file with values; of several, later ones win")
	flags.StringVar(&o.from.repository, "repo", "", "URL of the chart repository or OCI registry that has the chart")
	flags.StringVar(&o.from.version, "version", "", "version of the chart in that repository, or a constraint (default the newest stable one)")
	flags.StringVar(&o.from.allowed, "chart-repositories", outward.AnyHTTPS,
		"comma-separated URLs that charts may be fetched from, as Shipper has them")
	flags.StringVar(&o.app, "app-name", "", "name of the Application, which templates see as the release (default the chart's name)")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the Application")
	flags.BoolVar(&o.grant, "grant", false, "print only the ClusterRole with the rights that Shipper lacks in an application cluster")
	o.format.Register(flags)
	return cmd
}

// run prints the report of a chart, or the ClusterRole that it takes.
func (o *options) run(ctx context.Context, out io.Writer, named string) error {
	c, err := o.from.load(ctx, named)
	if err != nil {
		return err
	}
	given, err := read(o.values)
	if err != nil {
		return err
	}
	app := cmp.Or(o.app, c.Name())
	if bad := validation.IsDNS1123Label(app); len(bad) > 0 {
		return cli.WithCode(cli.Misused, fmt.Errorf("--app-name: %q cannot be the name of an Application: %s", app, bad[0]))
	}
	report, err := ReportOf(ctx, c, given, app, o.namespace)
	if err != nil {
		return err
	}
	if o.grant {
		text, err := grant(c.Name(), report.Rights)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(out, text)
		return err
	}
	err = o.format.Print(out, report, report.Text)
	if len(report.Refused) > 0 {
		err = errors.Join(err, fmt.Errorf("chart %s %s cannot be rolled out as it is", report.Chart, report.Version))
	}
	return err
}

// source is where a chart comes from that is no file.
type source struct{ repository, version, allowed string }

// load loads a chart from a file or folder, or by its name from a repository.
func (s source) load(ctx context.Context, named string) (*render.Chart, error) {
	if s.repository == "" {
		if s.version != "" {
			return nil, cli.WithCode(cli.Misused, errors.New("--version is for charts of a --repo"))
		}
		return open(named)
	}
	policy, err := outward.ParsePolicy(s.allowed)
	if err != nil {
		return nil, cli.WithCode(cli.Misused, fmt.Errorf("--chart-repositories: %w", err))
	}
	catalog := repository.NewCatalog(ctx, repository.Options{Repositories: policy})
	wanted := shipper.Chart{Name: named, Version: s.version, RepoURL: s.repository}
	found, err := catalog.Resolve(ctx, "", wanted)
	if err != nil {
		return nil, err
	}
	wanted.Version = found.Version
	return catalog.Load(ctx, "", wanted, found.Digest)
}

// open loads a chart from a folder or an archive. A folder is packed first, as `helm package` does.
func open(path string) (*render.Chart, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the chart: there is no folder or archive %q; --repo URL is for charts of a repository", path)
	}
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
