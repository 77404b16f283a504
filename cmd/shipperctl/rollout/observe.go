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
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// observed is what a picture is drawn of.
type observed struct {
	app *shipper.Application
	// releases are the Application's own that are not being deleted, oldest first.
	releases []*shipper.Release
	// deleting are those that are being deleted, oldest first. They serve until others do.
	deleting  []*shipper.Release
	capacity  map[string]*shipper.CapacityTarget // by the name of their Release
	traffic   map[string]*shipper.TrafficTarget
	installed map[string]*shipper.InstallationTarget
	// blocks bear on the namespace, as far as they may be read.
	blocks []*shipper.RolloutBlock
	// unread says which blocks may not be read, if so.
	unread string
}

// observe reads what there is of an Application.
func observe(ctx context.Context, c client.Client, key client.ObjectKey) (*observed, error) {
	app, releases, deleting, err := cli.ReadApplicationWithDeleting(ctx, c, key)
	if err != nil {
		return nil, err
	}
	o := &observed{
		app: app, releases: releases, deleting: deleting,
		capacity: map[string]*shipper.CapacityTarget{}, traffic: map[string]*shipper.TrafficTarget{},
		installed: map[string]*shipper.InstallationTarget{},
	}
	own := cli.OfApplication(key)
	var capacity shipper.CapacityTargetList
	if err := c.List(ctx, &capacity, own...); err != nil {
		return nil, fmt.Errorf("listing capacity targets of %s: %w", key, err)
	}
	for i := range capacity.Items {
		o.capacity[capacity.Items[i].Name] = &capacity.Items[i]
	}
	var installed shipper.InstallationTargetList
	if err := c.List(ctx, &installed, own...); err != nil {
		return nil, fmt.Errorf("listing installation targets of %s: %w", key, err)
	}
	for i := range installed.Items {
		o.installed[installed.Items[i].Name] = &installed.Items[i]
	}
	var traffic shipper.TrafficTargetList
	if err := c.List(ctx, &traffic, own...); err != nil {
		return nil, fmt.Errorf("listing traffic targets of %s: %w", key, err)
	}
	for i := range traffic.Items {
		o.traffic[traffic.Items[i].Name] = &traffic.Items[i]
	}
	o.readBlocks(ctx, c)
	return o, nil
}

// readBlocks reads those of the namespace and the global ones. Not everybody may read both; what holds is told by the
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

// printAll is `rollout status --all-namespaces`.
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
	pictures := make([]*View, 0, len(all))
	for _, one := range all {
		pictures = append(pictures, viewOf(one, now))
	}
	return format.Print(cmd.OutOrStdout(), pictures, func(width int) string { return allText(pictures, width) })
}

// observeAll reads what there is of all Applications, by one list of each kind.
func observeAll(ctx context.Context, c client.Reader) ([]*observed, error) {
	var apps shipper.ApplicationList
	var releases shipper.ReleaseList
	var installed shipper.InstallationTargetList
	var capacity shipper.CapacityTargetList
	var traffic shipper.TrafficTargetList
	for _, list := range []client.ObjectList{&apps, &releases, &installed, &capacity, &traffic} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the objects of all namespaces: %w", err)
		}
	}
	var blocks shipper.RolloutBlockList
	unread := ""
	if err := c.List(ctx, &blocks); err != nil {
		unread = "they cannot be read: " + err.Error()
	}
	byApp := map[client.ObjectKey]*observed{}
	out := make([]*observed, 0, len(apps.Items))
	for i := range apps.Items {
		app := &apps.Items[i]
		one := &observed{
			app: app, unread: unread, capacity: map[string]*shipper.CapacityTarget{}, traffic: map[string]*shipper.TrafficTarget{},
			installed: map[string]*shipper.InstallationTarget{},
		}
		for j := range blocks.Items {
			one.blocks = append(one.blocks, &blocks.Items[j])
		}
		byApp[client.ObjectKeyFromObject(app)] = one
		out = append(out, one)
	}
	of := func(o client.Object) *observed {
		return byApp[client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[shipper.AppLabel]}]
	}
	for i := range releases.Items {
		if one := of(&releases.Items[i]); one != nil {
			one.releases = append(one.releases, &releases.Items[i])
		}
	}
	for i := range installed.Items {
		if one := of(&installed.Items[i]); one != nil {
			one.installed[installed.Items[i].Name] = &installed.Items[i]
		}
	}
	for i := range capacity.Items {
		if one := of(&capacity.Items[i]); one != nil {
			one.capacity[capacity.Items[i].Name] = &capacity.Items[i]
		}
	}
	for i := range traffic.Items {
		if one := of(&traffic.Items[i]); one != nil {
			one.traffic[traffic.Items[i].Name] = &traffic.Items[i]
		}
	}
	for _, one := range out {
		one.releases, one.deleting = cli.SplitDeleting(one.app, one.releases)
	}
	slices.SortFunc(out, func(a, b *observed) int {
		return cmp.Or(cmp.Compare(a.app.Namespace, b.app.Namespace), cmp.Compare(a.app.Name, b.app.Name))
	})
	return out, nil
}

// allText has a row for each Application.
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

// stateText is what is most worth knowing of a rollout, and first what is wrong.
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

var errAlone = errors.New("--all-namespaces shows all applications: it takes no APPLICATION, --namespace, --watch nor --wait")
