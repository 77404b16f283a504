// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// observed has the objects of one rollout.
type observed struct {
	app *shipper.Application
	// releases are the Application's own that are not being deleted, oldest first.
	releases []*shipper.Release
	// deleting are those that are being deleted, oldest first. They serve until others do.
	deleting  []*shipper.Release
	capacity  map[string]*shipper.CapacityTarget // by the name of their Release
	traffic   map[string]*shipper.TrafficTarget
	installed map[string]*shipper.InstallationTarget
	checks    map[string]*shipper.CheckTarget
	// blocks bear on the namespace, as far as they may be read.
	blocks []*shipper.RolloutBlock
	// unread is why some blocks could not be read; empty if all were.
	unread string
}

// targets are those of one Application's Releases, or of all.
type targets struct {
	installed shipper.InstallationTargetList
	capacity  shipper.CapacityTargetList
	traffic   shipper.TrafficTargetList
	checks    shipper.CheckTargetList
}

func readTargets(ctx context.Context, c client.Reader, of ...client.ListOption) (*targets, error) {
	t := &targets{}
	for _, list := range []client.ObjectList{&t.installed, &t.capacity, &t.traffic} {
		if err := c.List(ctx, list, of...); err != nil {
			return nil, fmt.Errorf("listing targets: %w", err)
		}
	}
	// Neither an older management cluster nor an older role has this kind; the status of a Release says the most of it.
	if err := c.List(ctx, &t.checks, of...); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing targets: %w", err)
	}
	return t, nil
}

// of selects the targets of an Application's Releases.
func (t *targets) of(app *shipper.Application, releases, deleting []*shipper.Release) *observed {
	o := &observed{
		app: app, releases: releases, deleting: deleting, capacity: map[string]*shipper.CapacityTarget{},
		traffic: map[string]*shipper.TrafficTarget{}, installed: map[string]*shipper.InstallationTarget{},
		checks: map[string]*shipper.CheckTarget{},
	}
	for i := range t.installed.Items {
		if target := &t.installed.Items[i]; isOf(target, app) {
			o.installed[target.Name] = target
		}
	}
	for i := range t.capacity.Items {
		if target := &t.capacity.Items[i]; isOf(target, app) {
			o.capacity[target.Name] = target
		}
	}
	for i := range t.traffic.Items {
		if target := &t.traffic.Items[i]; isOf(target, app) {
			o.traffic[target.Name] = target
		}
	}
	for i := range t.checks.Items {
		if target := &t.checks.Items[i]; isOf(target, app) {
			o.checks[target.Name] = target
		}
	}
	return o
}

// isOf reports whether a Release or a target has the label of an Application.
func isOf(o client.Object, app *shipper.Application) bool {
	return o.GetNamespace() == app.Namespace && o.GetLabels()[shipper.AppLabel] == app.Name
}

func observe(ctx context.Context, c client.Client, key client.ObjectKey) (*observed, error) {
	app, releases, deleting, err := cli.ReadApplicationWithDeleting(ctx, c, key)
	if err != nil {
		return nil, err
	}
	t, err := readTargets(ctx, c, cli.OfApplication(key)...)
	if err != nil {
		return nil, fmt.Errorf("reading application %s: %w", key, err)
	}
	o := t.of(app, releases, deleting)
	o.readBlocks(ctx, c)
	return o, nil
}

// readBlocks reads those of the namespace and the global ones. Not every user may read both; blocks in effect are also in the
// Application's conditions in any case.
func (o *observed) readBlocks(ctx context.Context, c client.Client) {
	for _, namespace := range []string{shipper.GlobalBlocksNamespace, o.app.Namespace} {
		var list shipper.RolloutBlockList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			o.unread = "those of namespace " + namespace + " cannot be read: " + err.Error()
			continue
		}
		for i := range list.Items {
			o.blocks = append(o.blocks, &list.Items[i])
		}
		if o.app.Namespace == shipper.GlobalBlocksNamespace {
			return
		}
	}
}

func (o *options) printAll(cmd *cobra.Command, format cli.Format) error {
	c, _, err := o.Client()
	if err != nil {
		return err
	}
	all, err := observeAll(cmd.Context(), c)
	if err != nil {
		return err
	}
	now := o.clock.Now()
	views := make([]*View, 0, len(all))
	for _, one := range all {
		views = append(views, viewOf(one, now))
	}
	return format.Print(cmd.OutOrStdout(), views, func(width int) string { return allText(views, width) })
}

// observeAll reads all rollouts, by one list of each kind.
func observeAll(ctx context.Context, c client.Reader) ([]*observed, error) {
	var apps shipper.ApplicationList
	var releases shipper.ReleaseList
	for _, list := range []client.ObjectList{&apps, &releases} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the objects of all namespaces: %w", err)
		}
	}
	t, err := readTargets(ctx, c)
	if err != nil {
		return nil, err
	}
	var blocks shipper.RolloutBlockList
	unread := ""
	if err := c.List(ctx, &blocks); err != nil {
		unread = "they cannot be read: " + err.Error()
	}
	out := make([]*observed, 0, len(apps.Items))
	for i := range apps.Items {
		app := &apps.Items[i]
		var own []*shipper.Release
		for j := range releases.Items {
			if isOf(&releases.Items[j], app) {
				own = append(own, &releases.Items[j])
			}
		}
		live, deleting := cli.SplitDeleting(app, own)
		one := t.of(app, live, deleting)
		one.unread = unread
		for j := range blocks.Items {
			one.blocks = append(one.blocks, &blocks.Items[j])
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *observed) int {
		return cmp.Or(cmp.Compare(a.app.Namespace, b.app.Namespace), cmp.Compare(a.app.Name, b.app.Name))
	})
	return out, nil
}

func allText(all []*View, width int) string {
	if len(all) == 0 {
		return "there are no applications\n"
	}
	rows := make([][]string, 0, len(all))
	unread := ""
	for _, p := range all {
		rows = append(rows, []string{p.Namespace, p.Application, cmp.Or(p.Release, "-"), p.stepText(), p.stateText()})
		unread = p.Blocks.Unread
	}
	text := screen.Table(width, []string{"NAMESPACE", "APPLICATION", "RELEASE", "STEP", "STATE"}, rows)
	if unread != "" {
		text += "blocks: " + unread + "\n"
	}
	return text
}

// stepText is the step that is asked for: its index, that of the last one, and its name.
func (p *View) stepText() string {
	for i, s := range p.Steps {
		if s.Target {
			return fmt.Sprintf("%d/%d %s", i, len(p.Steps)-1, s.Name)
		}
	}
	return "-"
}

// stateText is the column about a rollout's state; problems come first.
func (p *View) stateText() string {
	var out []string
	out = append(out, p.Problems...)
	for i := range p.Clusters {
		for _, note := range p.Clusters[i].Notes {
			out = append(out, p.Clusters[i].Name+": "+note)
		}
	}
	if len(out) == 0 && p.over() {
		out = []string{"complete"}
	}
	for _, text := range p.Blocks.InEffect {
		out = append(out, "blocked by "+text)
	}
	for _, text := range p.Blocks.Overridden {
		out = append(out, "overrides "+text)
	}
	for _, text := range p.Waiting {
		out = append(out, "waits for "+text)
	}
	for _, text := range p.Deleting {
		out = append(out, "deletes "+text)
	}
	return strings.Join(out, "; ")
}

var errAllNamespaces = errors.New("--all-namespaces shows all applications: it takes no APPLICATION, --namespace, --watch nor --wait")
