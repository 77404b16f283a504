// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// pageSize is how many Releases are asked for at once; values may be large.
const pageSize = 200

// eachRelease calls do for every Release that there is, or that the options ask for. No more than a page of them is held.
func eachRelease(ctx context.Context, from client.Reader, do func(*shipper.Release), of ...client.ListOption) error {
	next := ""
	for {
		var list shipper.ReleaseList
		if err := from.List(ctx, &list, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, of...)...); err != nil {
			return fmt.Errorf("listing releases: %w", err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// readReleases reads all of them, or those that the options ask for.
func readReleases(ctx context.Context, from client.Reader, of ...client.ListOption) ([]shipper.Release, error) {
	var out []shipper.Release
	err := eachRelease(ctx, from, func(rel *shipper.Release) { out = append(out, *rel) }, of...)
	return out, err
}

// isPlacedOn reports whether a Release is placed on a cluster. One that goes is placed nowhere.
func isPlacedOn(rel *shipper.Release, cluster string) bool {
	return rel.DeletionTimestamp.IsZero() && slices.Contains(strategy.Clusters(rel), cluster)
}

// rolesOf gives each Release its part in the rollout of its Application; those whose place in history cannot be told, and
// those that go, have none.
func rolesOf(releases []shipper.Release) map[types.NamespacedName]strategy.Role {
	apps := map[types.NamespacedName][]*shipper.Release{}
	for i := range releases {
		rel := &releases[i]
		if rel.DeletionTimestamp.IsZero() {
			app := types.NamespacedName{Namespace: rel.Namespace, Name: rel.Labels[shipper.AppLabel]}
			apps[app] = append(apps[app], rel)
		}
	}
	out := map[types.NamespacedName]strategy.Role{}
	for _, rels := range apps {
		ordered, _ := stamp.SortByGeneration(rels)
		for i, role := range strategy.Roles(ordered) {
			out[types.NamespacedName{Namespace: ordered[i].Namespace, Name: ordered[i].Name}] = role
		}
	}
	return out
}
