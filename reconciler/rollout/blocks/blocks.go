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
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
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

// NameClusters reports whether it matters to any of the blocks in which clusters something runs: also by their regions, which those of
// a placement are known by.
func NameClusters(bearing []*shipper.RolloutBlock) bool {
	return slices.ContainsFunc(bearing, func(b *shipper.RolloutBlock) bool {
		return b.Spec.Scope != nil && len(b.Spec.Scope.Clusters)+len(b.Spec.Scope.Regions) > 0
	})
}

// View is an Application with its Releases and the blocks that bear on its namespace, at one time.
type View struct {
	App *shipper.Application
	// Releases are its own that are not being deleted, oldest first.
	Releases []*shipper.Release
	Bearing  []*shipper.RolloutBlock
	// Clusters are all there are. They are needed only when NameClusters.
	Clusters []shipper.Cluster
	Now      time.Time
	// UnhealthyAfter is how long a cluster may be not ready and still be chosen.
	UnhealthyAfter time.Duration
}

// OfApplication is what the blocks mean for whatever might be asked of the Application.
func (v View) OfApplication() block.Verdict {
	template := &v.App.Spec.Template
	return v.judge(v.app().Edit(template, template), v.App)
}

// OfTemplate is what the blocks mean for making the newest Release and the template one. Returns is true while that is
// done by going back to the newest.
func (v View) OfTemplate(returns bool) block.Verdict {
	app := v.app()
	var runs *shipper.ReleaseEnvironment
	if newest := app.Newest(); newest != nil {
		runs = &newest.Spec.Environment
	}
	c := app.Edit(runs, &v.App.Spec.Template)
	if returns {
		c = c.And(shipper.RolloutBlockAbort)
	}
	return v.judge(c, v.App)
}

// OfRelease is what the blocks mean for whatever might be asked of a Release, but to go back.
func (v View) OfRelease(rel *shipper.Release) block.Verdict { return v.judge(v.app().Step(rel), rel) }

// OfClusters is what the blocks mean for placing a Release on more clusters.
func (v View) OfClusters(rel *shipper.Release, added []string) block.Verdict {
	return v.judge(v.app().Joining(rel, added), rel)
}

// OfMoves says which blocks stop Shipper from moving the newest Release up, from moving it back and from aborting it; each is empty
// when none does. A move back concerns the clusters of its wave at least.
func (v View) OfMoves(newest *shipper.Release) (up, back, abort string) {
	app := v.app()
	move := func(c block.Change, clusters []string) string {
		verdict, _ := v.judge(c, newest).Narrowed(newest, clusters)
		return verdict.Message()
	}
	next := *newest
	to, _ := position.Of(newest).Next(newest.Spec.Environment.Strategy)
	to.Set(&next)
	c, clusters := app.Resume(newest)
	return move(app.Move(newest, &next)), move(c.And(shipper.RolloutBlockRetreat), clusters), v.judge(app.Deletion(newest), newest).Message()
}

// OfRollout is what the blocks mean for the rollout of the newest Release, as far as it was asked for.
func (v View) OfRollout() block.Verdict {
	app := v.app()
	return v.judge(app.Rollout(), app.Newest())
}

// Hold returns rels with what keeps each from being deleted: the blocks that its Application does not override, or itself
// does not.
func (v View) Hold(rels []strategy.Release) []strategy.Release {
	out, app := slices.Clone(rels), v.app()
	for i := range out {
		c := app.Trimming(out[i].Release)
		for _, o := range []client.Object{v.App, out[i].Release} {
			if verdict := v.judge(c, o); verdict.Blocked() {
				out[i].Held = verdict.Message()
				break
			}
		}
	}
	return out
}

// HoldDeleted returns rels, which are being deleted, with what keeps each from going: the blocks that hold both its deletion by hand
// and by Shipper.
func (v View) HoldDeleted(rels []strategy.Release) []strategy.Release {
	out := slices.Clone(rels)
	for i := range out {
		rel := out[i].Release
		app := v.app()
		all := append(slices.Clone(app.Releases), rel)
		if ordered, broken := stamp.SortByGeneration(all); len(broken) == 0 {
			app.Releases = ordered
		}
		by := v.judge(app.Deletion(rel), rel)
		if by.Blocked() && v.judge(app.Trimming(rel), rel).Blocked() {
			out[i].Held = by.Message()
		}
	}
	return out
}

// OfDeletion is what the blocks mean for the deletion of the Application.
func (v View) OfDeletion() block.Verdict {
	return v.judge(v.app().Edit(&v.App.Spec.Template, nil), v.App)
}

func (v View) app() block.App {
	return block.App{
		Name: v.App.Name, Labels: []map[string]string{v.App.Labels}, Releases: v.Releases,
		Clusters: func() []shipper.Cluster { return v.Clusters }, UnhealthyAfter: v.UnhealthyAfter, Now: v.Now,
	}
}

// judge judges by the overrides that o has. There is no request to ask about: what the webhook admitted is rolled out,
// whatever matchConditions say.
func (v View) judge(c block.Change, o client.Object) block.Verdict {
	return block.Judge(v.Bearing, block.Overrides(o.GetAnnotations()), c, v.Now)
}

// Overridden lists the blocks that a verdict says were overridden, as overrides do; empty when there are none or the
// change is blocked.
func Overridden(v block.Verdict) string {
	if v.Blocked() {
		return ""
	}
	return block.FormatOverrides(block.Names(v.Overridden))
}
