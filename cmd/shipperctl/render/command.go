// SPDX-License-Identifier: Apache-2.0

// Package render has `shipperctl plan` and `shipperctl chart render`, which write nothing. The first prints the rollout that applying
// an Application would start, the second the objects and hooks of its chart, rendered by the reconciler's own code.
package render

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/cmd/shipperctl/chartcheck"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/rollout"
)

type options struct {
	cli.Flags
	system       string
	repositories string
	clusters     []string
	region       string
	noHooks      bool
	format       cli.Format
}

// NewChartCommand returns `chart` with its sub-commands.
func NewChartCommand() *cobra.Command {
	o := &options{}
	render := cli.Group("render", "Show the objects that Shipper installs, for each cluster", newApp(o), newRelease(o))
	render.Long = "Show the objects that Shipper installs, for each cluster, and behind them the hooks of the chart. Charts are rendered\n" +
		"with the values, the version and the APIs of the cluster, which is asked with Shipper's credentials; a note says where you\n" +
		"may not read them, or it does not answer. Values from ConfigMaps and Secrets are read with your rights, and shown as\n" +
		"rendered. ResourceOverrides are applied: those of a stored release, or those that its creation would copy now. Nothing is\n" +
		"written."
	flags := render.PersistentFlags()
	o.RegisterDaily(flags)
	flags.StringVar(&o.system, "system-namespace", shipper.SystemNamespace, "namespace Shipper runs in, where the credentials are")
	flags.StringVar(&o.repositories, "chart-repositories", outward.AnyHTTPS,
		"comma-separated URLs that charts may be fetched from, as Shipper has them; they are fetched from here")
	flags.StringSliceVar(&o.clusters, "clusters", nil, "for these clusters only, separated by commas (default all that it is placed on)")
	flags.StringVar(&o.region, "region", "", "for clusters of this region only (default all regions)")
	flags.BoolVar(&o.noHooks, "no-hooks", false, "leave out the hooks of the chart, which are run and not installed")
	o.format.Register(flags)
	flags.Lookup("output").Usage = "json or yaml for programs, with the clusters beside the objects (default manifests to read and apply)"
	return cli.Group("chart", "See what Shipper does with a chart, and what it renders to", chartcheck.NewCommand(), render)
}

func newApp(o *options) *cobra.Command {
	var file, name string
	cmd := &cobra.Command{
		Use:     "app [NAME]",
		Aliases: []string{"application"},
		Short:   "Show what an application's template renders to: one in the management cluster, or in a file",
		Long: "Show what an application's template renders to: that of one in the management cluster, or in a file. A file goes\n" +
			"through a dry run first, which resolves the version of the chart and the name of the Release.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if name != "" && name != args[0] {
					return cli.WithCode(cli.Misused, fmt.Errorf("two applications are named: %s and %s", name, args[0]))
				}
				name = args[0]
			}
			if (name == "") == (file == "") {
				return cli.WithCode(cli.Misused, errors.New("name an application, or a file with --file, and not both"))
			}
			r, err := o.renderer(cmd)
			if err != nil {
				return err
			}
			rels, err := r.requestedReleases(cmd.Context(), cmd.InOrStdin(), name, file, noteTo(cmd))
			if err != nil {
				return err
			}
			return r.render(cmd, rels)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "manifest of the application, also as --appFile and --filename; - is standard input")
	cmd.Flags().StringVar(&name, "app-name", "", "its name, also as --appName, instead of the argument")
	return cmd
}

func newRelease(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME",
		Short: "Show what a release renders to",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.renderer(cmd)
			if err != nil {
				return err
			}
			rel := &shipper.Release{}
			key := client.ObjectKey{Namespace: r.namespace, Name: args[0]}
			if err := r.client.Get(cmd.Context(), key, rel); err != nil {
				return fmt.Errorf("reading release %s: %w", key, err)
			}
			return r.render(cmd, []*shipper.Release{rel})
		},
	}
}

// loadTimeout is how long a command waits for a chart: a user has no later pass.
const loadTimeout = time.Minute

// renderer renders for the clusters of a management cluster.
type renderer struct {
	*options
	client    client.Client
	config    *rest.Config
	namespace string
	charts    installation.Renderer
	namer     rollout.Charts
}

func (o *options) renderer(cmd *cobra.Command) (*renderer, error) {
	policy, err := outward.ParsePolicy(o.repositories)
	if err != nil {
		return nil, cli.WithCode(cli.Misused, fmt.Errorf("--chart-repositories: %w", err))
	}
	_, namespace, err := o.Client()
	if err != nil {
		return nil, err
	}
	config, err := o.Management()
	if err != nil {
		return nil, err
	}
	c, err := cli.NewClient(config, corev1.AddToScheme, shipper.AddToScheme)
	if err != nil {
		return nil, err
	}
	charts := artifact.NewCharts(repository.NewCatalog(cmd.Context(), repository.Options{
		Repositories: policy, Secrets: repository.SecretsOf(c), SystemNamespace: o.system,
	}), c)
	values := artifact.LocateValues(c)
	return &renderer{
		o, c, config, namespace, installation.NewRenderer(charts, values, loadTimeout), rollout.NewCharts(charts, values),
	}, nil
}

// noteTo prints notes beside what a command prints.
func noteTo(cmd *cobra.Command) func(string, ...any) {
	return func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "Note: "+format+"\n", args...) }
}

func (r *renderer) render(cmd *cobra.Command, rels []*shipper.Release) error {
	out := []Rendering{}
	for _, rel := range rels {
		found, err := r.each(cmd.Context(), rel, noteTo(cmd))
		if err != nil {
			return err
		}
		out = append(out, found...)
	}
	var failed error
	text := func(int) string {
		text, err := manifests(out)
		failed = err
		return text
	}
	return errors.Join(r.format.Print(cmd.OutOrStdout(), out, text), failed)
}

// each renders a Release for each of its clusters; those with the same objects share a Rendering.
func (r *renderer) each(ctx context.Context, rel *shipper.Release, note func(string, ...any)) ([]Rendering, error) {
	names, err := r.placed(ctx, rel)
	if err != nil {
		return nil, err
	}
	if unplaced := slices.DeleteFunc(slices.Clone(r.clusters), func(n string) bool { return slices.Contains(names, n) }); len(unplaced) > 0 {
		note("release %s/%s is not placed on %s; it is rendered as if it were", rel.Namespace, rel.Name, strings.Join(unplaced, ", "))
	}
	if len(r.clusters) > 0 {
		names = slices.Compact(slices.Sorted(slices.Values(r.clusters)))
	}
	var out []Rendering
	for _, name := range names {
		in, err := r.describeCluster(ctx, name, note)
		if err != nil {
			return nil, err
		}
		if in.Region, err = r.regionOf(ctx, rel, name, in.Region); err != nil {
			return nil, err
		}
		if r.region != "" && in.Region != r.region {
			continue
		}
		objects, hooks, err := installation.Preview(ctx, r.charts, rel, in)
		if err != nil {
			return nil, fmt.Errorf("rendering release %s/%s for cluster %s: %w", rel.Namespace, rel.Name, name, err)
		}
		if r.noHooks {
			hooks = nil
		}
		out = merge(out, Rendering{
			Namespace: rel.Namespace, Application: rel.Labels[shipper.AppLabel], Release: rel.Name, Clusters: []string{name},
			Objects: objects, Hooks: hooks,
		})
	}
	if len(out) == 0 && r.region != "" {
		return nil, fmt.Errorf("release %s/%s is in no cluster of region %s; its clusters are %s",
			rel.Namespace, rel.Name, r.region, strings.Join(names, ", "))
	}
	return out, nil
}

// Rendering has the objects of a Release in clusters where they are the same, as `-o json` prints them.
type Rendering struct {
	Namespace   string   `json:"namespace"`
	Application string   `json:"application"`
	Release     string   `json:"release"`
	Clusters    []string `json:"clusters"`
	// Objects are in the order they are installed.
	Objects []*unstructured.Unstructured `json:"objects"`
	// Hooks are in the order they are run, each at the moments that its annotation names.
	Hooks []*unstructured.Unstructured `json:"hooks,omitempty"`
}

// merge adds a rendering to those of the same Release: its clusters to one that has the same objects, if there is one.
func merge(all []Rendering, one Rendering) []Rendering {
	for i := range all {
		if reflect.DeepEqual(all[i].Objects, one.Objects) && reflect.DeepEqual(all[i].Hooks, one.Hooks) {
			all[i].Clusters = append(all[i].Clusters, one.Clusters...)
			return all
		}
	}
	return append(all, one)
}

// manifests are YAML documents, each rendering after a comment with its clusters.
func manifests(all []Rendering) (string, error) {
	var out strings.Builder
	for _, r := range all {
		fmt.Fprintf(&out, "# Release %s/%s in %s\n", r.Namespace, r.Release, strings.Join(r.Clusters, ", "))
		for _, o := range slices.Concat(r.Objects, r.Hooks) {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
			}
			out.WriteString("---\n")
			out.Write(text)
		}
	}
	return out.String(), nil
}
