// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// maxNamed is how many objects one line of a plan names.
const maxNamed = 8

// stepsOfLots describes the steps of a Release whose objects are named by Application: the Pods of the Deployments that run side by side,
// what becomes of each workload, and the shared objects that change at the installation, under the incumbent's Pods.
func (w *Webhook) stepsOfLots(
	ctx context.Context, env *shipper.ReleaseEnvironment, rel, incumbent *shipper.Release, clusters []string,
) []string {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	said, counts, err := remarks{}, [][2][]int32(nil), error(nil)
	groups := render.Group(values.LayersOf(env), render.ClustersOf(w.State.Clusters(), clusters))
	said.of = len(groups)
	for _, in := range groups {
		var table, before lots.Table
		if table, err = w.lotsIn(ctx, rel, in.Cluster); err != nil {
			break
		}
		count := [2][]int32{sideBySide(&table), nil}
		for _, text := range describeLots(&table, env.Strategy) {
			said.add(in, text)
		}
		if incumbent != nil {
			if before, err = w.lotsIn(ctx, incumbent, in.Cluster); err != nil {
				break
			}
			count[1] = sideBySide(&before)
			for _, text := range describeChanges(table.Changed(&before)) {
				said.add(in, text)
			}
		}
		if !slices.ContainsFunc(counts, func(c [2][]int32) bool { return slices.Equal(c[0], count[0]) && slices.Equal(c[1], count[1]) }) {
			counts = append(counts, count)
		}
	}
	counted := err == nil && len(counts) == 1 && len(counts[0][0])+len(counts[0][1]) > 0
	of := [2][]int32{}
	if counted {
		of = counts[0]
	}
	if incumbent != nil && of[1] == nil {
		of[1] = []int32{}
	}
	out := w.describeSteps(ctx, rel, preview.Steps(env.Strategy, of[0], of[1]), counted)
	if failure := preview.Failure(env.Strategy, incumbent == nil); failure != "" {
		out = append(out, failure)
	}
	if err != nil {
		return append(out, "what becomes of the chart's objects is not known: "+err.Error())
	}
	return append(out, said.texts()...)
}

// lotsIn are what becomes of the objects of a Release in a cluster.
func (w *Webhook) lotsIn(ctx context.Context, rel *shipper.Release, in render.Cluster) (lots.Table, error) {
	if len(rel.Spec.Environment.ValuesFrom) > 0 {
		return lots.Table{}, errors.New("release " + rel.Name + " has values from ConfigMaps or Secrets, which are not merged here")
	}
	return w.Charts.Lots(ctx, rel, in)
}

// sideBySide are the numbers of Pods of the Deployments that run side by side.
func sideBySide(t *lots.Table) []int32 {
	var out []int32
	for _, e := range t.Workloads() {
		if e.Lot == lots.SideBySide && e.Object.GetKind() == "Deployment" {
			out = append(out, e.Replicas)
		}
	}
	return out
}

// describeLots says of each workload what becomes of it, and at which step. Workloads of which the same is to be said are together.
func describeLots(t *lots.Table, s *shipper.RolloutStrategy) []string {
	var texts []string
	named := map[string][]string{}
	for i, of := range render.Workloads(t) {
		e, text := t.Workloads()[i], of.Lot(s)
		if of.InPlace && e.Reason != of.Kind {
			text += ": " + e.Reason
		}
		if named[text] == nil {
			texts = append(texts, text)
		}
		named[text] = append(named[text], of.String())
	}
	var out []string
	for _, text := range texts {
		for part := range slices.Chunk(named[text], maxNamed) {
			out = append(out, strings.Join(part, ", ")+": "+text)
		}
	}
	return out
}

// describeChanges names shared objects that change while both Releases run.
func describeChanges(changed []string) []string {
	var out []string
	for part := range slices.Chunk(changed, maxNamed) {
		out = append(out, "shared by both Releases, and changed at the installation, before the first step: "+strings.Join(part, ", "))
	}
	return out
}
