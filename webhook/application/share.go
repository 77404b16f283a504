// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/webhook/response"
)

// warnOfShare warns of the step that gives the contender most requests beyond its weight, since Pods take traffic whole. The incumbent is
// taken to have as many Pods. It counts them in groups of clusters that judgeChart has rendered, and returns at the first error.
func (w *Webhook) warnOfShare(ctx context.Context, a *response.Response, rel *shipper.Release, groups []render.Alike) {
	s := rel.Spec.Environment.Strategy
	if s == nil || !slices.ContainsFunc(s.Steps, func(step shipper.RolloutStrategyStep) bool {
		return step.Traffic.Contender > 0 && step.Traffic.Incumbent > 0
	}) {
		return
	}
	var shares []preview.Share
	texts := map[preview.Share]string{}
	for _, in := range groups {
		backends, err := w.backends(ctx, rel, in.Cluster)
		if err != nil {
			return
		}
		where := ""
		if len(groups) > 1 {
			where = " in " + abridged(in.Names)
		}
		for _, b := range backends {
			for _, share := range preview.Shares(s, b.replicas) {
				if texts[share] == "" {
					shares, texts[share] = append(shares, share), describeShare(share, s.Steps[share.Step], b, where)
				}
			}
		}
	}
	if worst, found := preview.Worst(shares); found {
		a.Warn("%s", texts[worst])
	}
}

// describeShare says what whole Pods give in a step, and what to do.
func describeShare(share preview.Share, step shipper.RolloutStrategyStep, b backend, where string) string {
	replicas, of := 0, ""
	for _, n := range b.replicas {
		replicas += int(n)
	}
	if b.service != "" {
		of = " of Service " + b.service
	}
	remedy := "have more replicas, or leave the contender without traffic there"
	if len(b.replicas) == 1 {
		remedy = preview.Remedy(step, "its capacity.incumbent")
	}
	return fmt.Sprintf("step %d (%s): the contender gets %s of the requests%s, and its weight asks for %s: Pods take traffic whole, and with "+
		"%s%s it has %d of %d in traffic; %s", share.Step, share.Name, share.Got(), of, share.Wanted(), count(replicas, "replica"), where,
		share.Serving, share.All, remedy)
}

// backend is a Service that traffic is shifted on, with the replicas of the Deployments that serve it. It has no name where there is one.
type backend struct {
	service  string
	replicas []int32
}

// backends are the Services of a Release that traffic is shifted on, in a cluster.
func (w *Webhook) backends(ctx context.Context, rel *shipper.Release, in render.Cluster) ([]backend, error) {
	if rel.Spec.Environment.Chart.Naming != shipper.NamingByApplication {
		n, err := w.Charts.Replicas(ctx, rel, in)
		return []backend{{replicas: []int32{n}}}, err
	}
	table, err := w.Charts.Lots(ctx, rel, in)
	if err != nil {
		return nil, err
	}
	var out []backend
	for _, s := range table.Services {
		if s.Use != lots.Production {
			continue
		}
		b := backend{service: s.Name}
		for _, e := range table.Workloads() {
			if e.Lot == lots.SideBySide && slices.Contains(e.Serves, s.Name) {
				b.replicas = append(b.replicas, e.Replicas)
			}
		}
		out = append(out, b)
	}
	return out, nil
}
