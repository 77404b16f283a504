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

// Siblings are the targets with resources of an Application, as a pass in a cluster finds them. The pass works on one after the other.
type Siblings struct {
	// Targets are all, the newest first.
	Targets []*shipper.InstallationTarget
	// Writer is the one that writes in the cluster: the newest in effect that lists it. Nil when none does.
	Writer *shipper.InstallationTarget

	live client.Reader
	// listed are the targets as the API server itself listed them in this pass, and ended whether those that it was asked for are in effect.
	listed *shipper.InstallationTargetList
	ended  map[types.UID]bool
}

// Siblings reads the targets of an Application from the cache.
func (w *Worker) Siblings(ctx context.Context, app types.NamespacedName, cluster string) (*Siblings, error) {
	var list shipper.InstallationTargetList
	if err := targets.OfApplication(ctx, w.Client, &list, app.Namespace, app.Name); err != nil {
		return nil, err
	}
	out, generations := &Siblings{live: w.Live, ended: map[types.UID]bool{}}, map[types.UID]int{}
	for i := range list.Items {
		it := &list.Items[i]
		if it.Spec.Resources == nil {
			continue
		}
		var rel shipper.Release
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(it), &rel)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Release %s: %w", it.Name, err)
		}
		generations[it.UID] = -1
		if n, broken := stamp.Generation(&rel); err == nil && broken == nil {
			generations[it.UID] = n
		}
		out.Targets = append(out.Targets, it)
	}
	slices.SortFunc(out.Targets, func(a, b *shipper.InstallationTarget) int {
		// Without generations the time and the name keep the order the same.
		return cmp.Or(cmp.Compare(generations[b.UID], generations[a.UID]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for _, it := range out.Targets {
		if !slices.Contains(it.Spec.Clusters, cluster) {
			continue
		}
		if ended, err := targets.Ended(ctx, w.Client, it); err != nil || !ended {
			out.Writer = it
			return out, err
		}
	}
	return out, nil
}

// removes reports whether a target that leaves a cluster is to remove what the anchor lists: no other target lists the cluster, and
// the one that wrote the anchor is this one or is gone. The API server is asked, once in a pass: an outdated cache must not take down
// what a newer target has.
func (s *Siblings) removes(ctx context.Context, it *shipper.InstallationTarget, cluster, writer string) (bool, error) {
	if s.listed == nil {
		var list shipper.InstallationTargetList
		if err := targets.OfApplication(ctx, s.live, &list, it.Namespace, it.Labels[shipper.AppLabel]); err != nil {
			return false, err
		}
		s.listed = &list
	}
	for i := range s.listed.Items {
		other := &s.listed.Items[i]
		if other.Spec.Resources == nil || other.UID == it.UID {
			continue
		}
		if string(other.UID) == writer {
			return false, nil
		}
		if !slices.Contains(other.Spec.Clusters, cluster) {
			continue
		}
		if ended, err := s.hasEnded(ctx, other); err != nil || !ended {
			return false, err
		}
	}
	return true, nil
}

// hasEnded reports whether the API server says that a target is no longer in effect.
func (s *Siblings) hasEnded(ctx context.Context, it *shipper.InstallationTarget) (bool, error) {
	if ended, asked := s.ended[it.UID]; asked {
		return ended, nil
	}
	ended, err := targets.Ended(ctx, s.live, it)
	if err == nil {
		s.ended[it.UID] = ended
	}
	return ended, err
}
