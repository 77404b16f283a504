// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/targets"
)

// ownerOf is the Application of a target, as placed objects name it.
func ownerOf(it *shipper.InstallationTarget) string {
	return it.Namespace + "/" + it.Labels[shipper.AppLabel]
}

// sibling is a target of an Application.
type sibling struct {
	target *shipper.InstallationTarget
	// generation is that of its Release, -1 where there is none.
	generation int
	// ended is set once the target is no longer in effect.
	ended bool
}

// lists reports whether a target is in effect and is to have its objects in a cluster.
func (s sibling) lists(cluster string) bool {
	return !s.ended && slices.Contains(s.target.Spec.Clusters, cluster)
}

// siblings are the targets with resources of an Application, the newest first, without those that skip names by UID.
func siblings(ctx context.Context, from client.Reader, it *shipper.InstallationTarget, skip ...types.UID) ([]sibling, error) {
	var list shipper.InstallationTargetList
	if err := targets.OfApplication(ctx, from, &list, it.Namespace, it.Labels[shipper.AppLabel]); err != nil {
		return nil, err
	}
	var out []sibling
	for i := range list.Items {
		one := sibling{target: &list.Items[i], generation: -1}
		if one.target.Spec.Resources == nil || slices.Contains(skip, one.target.UID) {
			continue
		}
		var rel shipper.Release
		err := from.Get(ctx, client.ObjectKeyFromObject(one.target), &rel)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Release %s: %w", one.target.Name, err)
		}
		if n, broken := stamp.Generation(&rel); err == nil && broken == nil {
			one.generation = n
		}
		if one.ended, err = targets.Ended(ctx, from, one.target); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortFunc(out, newestFirst)
	return out, nil
}

// newestFirst orders targets by the generations of their Releases. Without those, the time and the name keep the order the same.
func newestFirst(a, b sibling) int {
	return cmp.Or(cmp.Compare(b.generation, a.generation),
		b.target.CreationTimestamp.Compare(a.target.CreationTimestamp.Time), cmp.Compare(b.target.Name, a.target.Name))
}

// headOf is the target that writes in a cluster: the newest that lists it. Nil when none does.
func headOf(all []sibling, cluster string) *shipper.InstallationTarget {
	i := slices.IndexFunc(all, func(s sibling) bool { return s.lists(cluster) })
	if i < 0 {
		return nil
	}
	return all[i].target
}

// removes reports whether a target that leaves a cluster is to remove what the anchor lists: no other target lists the cluster, and
// the one that wrote the anchor is this one or is gone.
func removes(all []sibling, it *shipper.InstallationTarget, cluster, writer string) bool {
	for _, s := range all {
		if s.target.UID == it.UID {
			continue
		}
		if s.lists(cluster) || string(s.target.UID) == writer {
			return false
		}
	}
	return true
}
