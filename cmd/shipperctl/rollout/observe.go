// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
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
