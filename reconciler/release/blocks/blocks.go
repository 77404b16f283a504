// SPDX-License-Identifier: Apache-2.0

// Package blocks reads RolloutBlocks and says what they mean for what the reconcilers do.
package blocks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bearing reads the RolloutBlocks that bear on a namespace.
func Bearing(ctx context.Context, from client.Reader, namespace, global string) ([]*shipper.RolloutBlock, error) {
	var out []*shipper.RolloutBlock
	namespaces := []string{namespace}
	if global != namespace && global != "" {
		namespaces = append(namespaces, global)
	}
	for _, namespace := range namespaces {
		var list shipper.RolloutBlockList
		if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing rollout blocks in %s: %w", namespace, err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// NameClusters tells whether it matters to any of the blocks in which clusters something runs.
func NameClusters(bearing []*shipper.RolloutBlock) bool {
	return slices.ContainsFunc(bearing, func(b *shipper.RolloutBlock) bool {
		return b.Spec.Scope != nil && len(b.Spec.Scope.Clusters) > 0
	})
}

// View is the blocks that bear on an Application's namespace, at one time, and what they are asked with.
type View struct {
	Bearing []*shipper.RolloutBlock
	// Clusters are all there are. They are needed only when NameClusters.
	Clusters []shipper.Cluster
	Now      time.Time
}

// OfApplication is what the blocks mean for an Application whose template is to become a Release, and that is to be
// tidied up. rels are its Releases, oldest first. returns is true while it goes back to the newest of them.
func (v View) OfApplication(app *shipper.Application, rels []*shipper.Release, returns bool) block.Verdict {
	template := &app.Spec.Template
	c := block.Change{
		Labels: []map[string]string{app.Labels}, Environments: []*shipper.ReleaseEnvironment{template},
	}
	var newest *shipper.Release
	if len(rels) > 0 {
		newest = rels[len(rels)-1]
	}
	if returns {
		c = c.And(shipper.RolloutBlockAbort)
	}
	if block.Rollback(template, newest, rels) {
		c = c.And(shipper.RolloutBlockRollback)
	}
	c.Clusters = func() []string {
		choice, err := placement.Choose(app.Name, template.ClusterRequirements, v.Clusters)
		if err != nil {
			return nil
		}
		if newest != nil {
			choice = append(choice, strategy.Clusters(newest)...)
		}
		return choice
	}
	return v.judge(app, c)
}

// OfRelease is what the blocks mean for what is to become of a Release apart from its rollout.
func (v View) OfRelease(rel *shipper.Release) block.Verdict {
	return v.judge(rel, v.change(rel, block.OfRelease(rel)))
}

// OfRollout is what the blocks mean for the rollout of the newest of an Application's Releases, oldest first.
func (v View) OfRollout(rels []*shipper.Release) block.Verdict {
	newest := rels[len(rels)-1]
	return v.judge(newest, v.change(newest, block.OfRollout(newest, rels)))
}

// change knows where a Release that has no clusters yet would be placed.
func (v View) change(rel *shipper.Release, c block.Change) block.Change {
	if len(strategy.Clusters(rel)) == 0 {
		c.Clusters = func() []string {
			choice, err := placement.Choose(rel.Labels[shipper.AppLabel], rel.Spec.Environment.ClusterRequirements, v.Clusters)
			if err != nil {
				return nil
			}
			return choice
		}
	}
	return c
}

// judge has no request to ask about: what the webhook admitted is rolled out, whatever matchConditions say.
func (v View) judge(o client.Object, c block.Change) block.Verdict {
	return block.Judge(v.Bearing, block.Overrides(o.GetAnnotations()), c, v.Now)
}

// Hold returns rels with what keeps each from being deleted: the blocks that stop its Application, or itself.
func (v View) Hold(app *shipper.Application, rels []strategy.Release) []strategy.Release {
	out := slices.Clone(rels)
	all := make([]*shipper.Release, len(rels))
	for i := range rels {
		all[i] = rels[i].Release
	}
	ofApplication := v.OfApplication(app, all, false)
	for i := range out {
		for _, verdict := range []block.Verdict{ofApplication, v.OfRelease(out[i].Release)} {
			if verdict.Blocked() {
				out[i].Held = verdict.Message()
				break
			}
		}
	}
	return out
}

// Overridden lists the blocks that a verdict says were overridden, as overrides do; empty when there are none or the
// change is blocked.
func Overridden(v block.Verdict) string {
	if v.Blocked() {
		return ""
	}
	return block.FormatOverrides(block.Names(v.Overridden))
}
