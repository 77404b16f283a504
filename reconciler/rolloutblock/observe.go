// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// byOverride indexes Applications and Releases by the blocks they name.
const byOverride = "rollout-block.override"

// overrideKeys are the index keys of an object.
func overrideKeys(object client.Object) []string {
	var out []string
	for _, name := range overrides(object) {
		out = append(out, name.String())
	}
	return out
}

// overrides are the blocks an object names. An annotation that cannot be read names none: the webhook refuses it, and
// the conditions of blocked objects report it.
func overrides(object client.Object) []types.NamespacedName {
	names, err := rules.ParseOverrides(object.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation])
	if err != nil {
		return nil
	}
	return names
}

// namers are the objects that name one block.
type namers struct {
	applications []shipper.Application
	releases     []shipper.Release
}

// any reports whether there are any.
func (n namers) any() bool { return len(n.applications)+len(n.releases) > 0 }

// ofAnother are those whose override was one of an earlier block of that name.
func (n namers) ofAnother(b *shipper.RolloutBlock) namers {
	other := func(o client.Object) bool {
		r, ok := rules.Recorded(rules.Records(o.GetAnnotations()), rules.Name(b))
		return ok && r.UID != "" && r.UID != b.UID
	}
	var out namers
	for i := range n.applications {
		if other(&n.applications[i]) {
			out.applications = append(out.applications, n.applications[i])
		}
	}
	for i := range n.releases {
		if other(&n.releases[i]) {
			out.releases = append(out.releases, n.releases[i])
		}
	}
	return out
}

// observe lists who names a block.
func (r *Reconciler) observe(ctx context.Context, block types.NamespacedName) (namers, error) {
	of := client.MatchingFields{byOverride: block.String()}
	var applications shipper.ApplicationList
	if err := r.client.List(ctx, &applications, of); err != nil {
		return namers{}, fmt.Errorf("listing Applications that override %s: %w", block, err)
	}
	var releases shipper.ReleaseList
	if err := r.client.List(ctx, &releases, of); err != nil {
		return namers{}, fmt.Errorf("listing Releases that override %s: %w", block, err)
	}
	return namers{applications.Items, releases.Items}, nil
}

// overriders turns a change of an object into requests for the blocks it named before and names now.
type overriders struct{}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Create makes requests for all blocks named.
func (overriders) Create(_ context.Context, e event.CreateEvent, q requests) {
	request(q, e.Object)
}

// Update makes requests for all blocks named before or after.
func (overriders) Update(_ context.Context, e event.UpdateEvent, q requests) {
	annotation := shipper.RolloutBlockOverrideAnnotation
	if e.ObjectOld.GetAnnotations()[annotation] != e.ObjectNew.GetAnnotations()[annotation] {
		request(q, e.ObjectOld, e.ObjectNew)
	}
}

// Delete makes requests for all blocks that were named.
func (overriders) Delete(_ context.Context, e event.DeleteEvent, q requests) {
	request(q, e.Object)
}

// Generic makes no requests: there are no such events.
func (overriders) Generic(context.Context, event.GenericEvent, requests) {}

func request(q requests, objects ...client.Object) {
	for _, object := range objects {
		for _, name := range overrides(object) {
			q.Add(reconcile.Request{NamespacedName: name})
		}
	}
}
