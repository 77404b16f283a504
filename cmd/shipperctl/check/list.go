// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newList(o *options) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the Checks of a namespace and those that all share: how they measure, who uses them, and which are made now",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && o.Namespace != "" {
				return cli.WithCode(cli.Misused, errors.New("--all-namespaces excludes --namespace"))
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			if all {
				namespace = ""
			}
			found, err := o.list(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			if found.unread != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "Note: "+found.unread)
			}
			listed := found.listed(o.shared)
			return o.format.Print(cmd.OutOrStdout(), listed, func(width int) string { return table(listed, width) })
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "the Checks of all namespaces")
	return cmd
}

// found are Checks, and the objects that name or make them.
type found struct {
	checks   []shipper.Check
	apps     []shipper.Application
	releases []shipper.Release
	targets  map[types.NamespacedName]*shipper.CheckTarget
	// unread says which Checks could not be read; empty if all were.
	unread string
}

// list reads the Checks of a namespace, of all if it is empty, and those that are shared.
func (o *options) list(ctx context.Context, c client.Reader, namespace string) (*found, error) {
	var checks, shared shipper.CheckList
	var apps shipper.ApplicationList
	var releases shipper.ReleaseList
	var targets shipper.CheckTargetList
	for _, list := range []client.ObjectList{&checks, &apps, &releases, &targets} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing checks and what uses them: %w", err)
		}
	}
	out := &found{apps: apps.Items, releases: releases.Items, targets: map[types.NamespacedName]*shipper.CheckTarget{}}
	if namespace != "" && namespace != o.shared {
		switch err := c.List(ctx, &shared, client.InNamespace(o.shared)); {
		case apierrors.IsForbidden(err):
			out.unread = fmt.Sprintf("you may not list the Checks of namespace %s, which all share", o.shared)
		case err != nil:
			return nil, fmt.Errorf("listing the checks of namespace %s: %w", o.shared, err)
		}
	}
	out.checks = append(checks.Items, shared.Items...)
	for i := range targets.Items {
		out.targets[client.ObjectKeyFromObject(&targets.Items[i])] = &targets.Items[i]
	}
	return out, nil
}

// listedCheck is a Check as it is listed, also by `-o json`.
type listedCheck struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Measures describes the server or the program that gives the values, in words for people.
	Measures string `json:"measures"`
	// Interval is the time between two measurements; empty for one that is made once.
	Interval string `json:"interval,omitempty"`
	Over     string `json:"over"`
	Pass     string `json:"pass,omitempty"`
	Fail     string `json:"fail,omitempty"`
	// UsedBy are the Applications whose strategies name the Check, each as namespace/name.
	UsedBy []string `json:"usedBy"`
	// Running are the checks of Releases that are rolled out.
	Running []runningCheck `json:"running"`
}

// runningCheck is a Check that is made for a Release.
type runningCheck struct {
	Namespace   string `json:"namespace"`
	Application string `json:"application"`
	Release     string `json:"release"`
	Step        int32  `json:"step"`
	// Name is that in the step.
	Name string `json:"name"`
	// Phase is that of the cluster in which the check is worst; Cluster names it, and is empty for a check over the fleet.
	Phase   shipper.CheckPhase `json:"phase"`
	Cluster string             `json:"cluster,omitempty"`
	// Measured of the Count measurements that are needed gave a result there.
	Measured int32 `json:"measured"`
	Count    int32 `json:"count"`
	DryRun   bool  `json:"dryRun,omitempty"`
}

// listed is pure.
func (f *found) listed(shared string) []listedCheck {
	users, running := f.users(shared), f.running()
	out := []listedCheck{}
	for i := range f.checks {
		c := &f.checks[i]
		key := client.ObjectKeyFromObject(c)
		one := listedCheck{
			Namespace: c.Namespace, Name: c.Name, Measures: measures(&c.Spec), Over: string(cmp.Or(c.Spec.Over, shipper.OverCluster)),
			Pass: c.Spec.Pass, Fail: c.Spec.Fail, UsedBy: append([]string{}, users[key]...), Running: append([]runningCheck{}, running[key]...),
		}
		if !check.Once(&c.Spec) {
			one.Interval = brief(check.Interval(&c.Spec))
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b listedCheck) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// brief is a duration as users write it: 5m, and not 5m0s.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// users are the Applications by the Checks that their strategies name, or that Releases have taken for them from a Strategy, sorted.
func (f *found) users(shared string) map[types.NamespacedName][]string {
	out := map[types.NamespacedName][]string{}
	rels := make([]*shipper.Release, len(f.releases))
	for i := range f.releases {
		rels[i] = &f.releases[i]
	}
	for i := range f.apps {
		app := &f.apps[i]
		of := stamp.WithStrategy(app, stamp.KnownStrategy(app, rels)).Spec.Template.Strategy
		for _, c := range of.AllChecks() {
			key, err := check.KeyOf(c.Check, app.Namespace, shared)
			if name := client.ObjectKeyFromObject(app).String(); err == nil && !slices.Contains(out[key], name) {
				out[key] = append(out[key], name)
			}
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// running are the checks of newest Releases that are not complete, by the Check that was copied.
func (f *found) running() map[types.NamespacedName][]runningCheck {
	out := map[types.NamespacedName][]runningCheck{}
	for i := range f.apps {
		app := &f.apps[i]
		var own []*shipper.Release
		for j := range f.releases {
			if rel := &f.releases[j]; rel.Namespace == app.Namespace && rel.Labels[shipper.AppLabel] == app.Name {
				own = append(own, rel)
			}
		}
		live, _ := cli.SplitDeleting(app, own)
		if len(live) == 0 || strategy.Complete(live[len(live)-1]) {
			continue
		}
		newest := live[len(live)-1]
		target := f.targets[client.ObjectKeyFromObject(newest)]
		if !check.Current(target, newest) {
			continue
		}
		for n, is := range check.StateOf(target).Checks {
			from, name, _ := strings.Cut(target.Spec.Checks[n].From, "/")
			key := types.NamespacedName{Namespace: from, Name: name}
			out[key] = append(out[key], runningCheck{
				Namespace: app.Namespace, Application: app.Name, Release: newest.Name, Step: target.Spec.Step, Name: is.Name, Phase: is.Phase,
				Cluster: is.Cluster, Measured: is.Measured, Count: is.Count, DryRun: is.DryRun,
			})
		}
	}
	return out
}

// measures describes what a Check measures.
func measures(c *shipper.CheckSpec) string {
	switch {
	case c.Prometheus != nil:
		text := "Prometheus: " + strings.Join(slices.Sorted(maps.Keys(c.Prometheus.Queries)), ", ")
		if c.Prometheus.Address != "" {
			text += " at " + c.Prometheus.Address
		}
		return text
	case c.HTTP != nil:
		return cmp.Or(string(c.HTTP.Method), "GET") + " " + c.HTTP.URL
	case c.Tests != nil && len(c.Tests.Names) > 0:
		return "tests of the chart: " + strings.Join(c.Tests.Names, ", ")
	case c.Tests != nil:
		return "all tests of the chart"
	case c.Job != nil:
		return "a Job"
	}
	return "nothing"
}

// text is a running check in the table.
func (r *runningCheck) text() string {
	name := r.Application
	if r.DryRun {
		name += " (dry)"
	}
	text := fmt.Sprintf("%s: %s", name, r.Phase)
	if r.Count > 1 {
		text += fmt.Sprintf(" %d/%d", r.Measured, r.Count)
	}
	if r.Cluster != "" {
		text += " in " + r.Cluster
	}
	return text
}

func table(checks []listedCheck, width int) string {
	if len(checks) == 0 {
		return "there are no Checks\n"
	}
	rows := make([][]string, 0, len(checks))
	for i := range checks {
		c := &checks[i]
		running := make([]string, len(c.Running))
		for n := range c.Running {
			running[n] = c.Running[n].text()
		}
		interval := cmp.Or(c.Interval, "once")
		if c.Over == string(shipper.OverFleet) {
			interval += ", over the fleet"
		}
		rows = append(rows, []string{
			c.Namespace + "/" + c.Name, c.Measures, interval, cmp.Or(strings.Join(c.UsedBy, ", "), "-"),
			cmp.Or(strings.Join(running, ", "), "-"),
		})
	}
	return screen.Table(width, []string{"CHECK", "MEASURES", "EVERY", "USED BY", "RUNNING"}, rows)
}
