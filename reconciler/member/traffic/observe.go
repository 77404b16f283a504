// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/targets"
)

// ClusterState is what a pass knows of the Releases of an Application in its cluster, by what capacity has read.
type ClusterState struct {
	// InPlace are those that have Pods of workloads in place.
	InPlace sets.Set[string]
	// Lacking are those that lack Pods that they are asked to have, or whose Pods are not ready.
	Lacking sets.Set[string]
	// Lowering is true if a Deployment is to have fewer Pods than it has.
	Lowering bool
	// Unknown is true if not all could be read: then any may lack Pods.
	Unknown bool
}

// lacks reports whether a Release may lack Pods that it is asked to have.
func (h ClusterState) lacks(release string) bool { return h.Unknown || h.Lacking.Has(release) }

// application is all TrafficTargets of one Application, and what they share.
type application struct {
	namespace, app string
	// targets are those in effect, the oldest first.
	targets []*shipper.TrafficTarget
	// weights are what the Releases ask for, by cluster.
	weights map[string][]rules.Release
	// going are the Releases whose weight counts no more.
	going sets.Set[string]
	// served are the clusters where a Release had endpoints, by what statuses say.
	served sets.Set[string]
	// established are the clusters where a step does not wait for the address of a Service, by what statuses say.
	established sets.Set[string]
	// byApplication is true where objects are named by Application, so that there may be several production Services.
	byApplication bool
	// podless are the clusters where all of a Release is no Pods, by Release.
	podless map[string]sets.Set[string]
	// here is what the pass knows of the cluster.
	here ClusterState
}

// application reads the TrafficTargets of an Application.
func (w *Worker) application(ctx context.Context, namespace, app string) (application, error) {
	out := application{
		namespace: namespace, app: app, weights: map[string][]rules.Release{}, going: sets.New[string](), served: sets.New[string](),
		established: sets.New[string](), podless: map[string]sets.Set[string]{},
	}
	var err error
	if out.byApplication, err = w.byApplication(ctx, namespace, app); err != nil {
		return out, err
	}
	var all shipper.TrafficTargetList
	if err := targets.OfApplication(ctx, w.client, &all, namespace, app); err != nil {
		return out, err
	}
	slices.SortFunc(all.Items, func(a, b shipper.TrafficTarget) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range all.Items {
		tt := &all.Items[i]
		servedIn(out.served, tt)
		establishedIn(out.established, tt)
		if ended, err := targets.Ended(ctx, w.client, tt); err != nil {
			return out, err
		} else if ended {
			out.going.Insert(releaseOf(tt))
			continue
		}
		capacity, err := w.capacity(ctx, tt)
		if err != nil {
			return out, err
		}
		out.targets = append(out.targets, tt)
		out.podless[releaseOf(tt)] = podlessIn(capacity)
		awaited := awaitedIn(capacity)
		for _, c := range tt.Spec.Clusters {
			out.weights[c.Name] = append(out.weights[c.Name], rules.Release{
				Name: releaseOf(tt), Weight: c.Weight, AsFound: c.AsFound, Sole: c.Sole, Awaited: awaited.Has(c.Name),
			})
		}
	}
	return out, nil
}

// byApplication reports whether the objects of an Application are named by it. All its Releases have one way.
func (w *Worker) byApplication(ctx context.Context, namespace, app string) (bool, error) {
	var all shipper.InstallationTargetList
	if err := targets.OfApplication(ctx, w.client, &all, namespace, app); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(it shipper.InstallationTarget) bool {
		return it.Spec.Chart != nil && it.Spec.Chart.Naming == shipper.NamingByApplication
	}), nil
}

// invalid is why a target cannot be carried out anywhere: two must not speak for one Release.
func (a application) invalid(tt *shipper.TrafficTarget) error {
	if a.app == "" {
		return invalid("the label %s is missing", shipper.AppLabel)
	}
	for _, other := range a.targets {
		if other.Name != tt.Name && releaseOf(other) == releaseOf(tt) {
			return invalid("TrafficTarget %q is for the same release %q", other.Name, releaseOf(tt))
		}
	}
	return nil
}

// releaseOf is the Release's name: that of the target, which the label repeats.
func releaseOf(tt *shipper.TrafficTarget) string {
	if release := tt.Labels[shipper.ReleaseLabel]; release != "" {
		return release
	}
	return tt.Name
}

// leaving reports whether a Release that no TrafficTarget is of any more is being removed from clusters.
func (w *Worker) leaving(ctx context.Context, namespace, release string) (bool, error) {
	it := &shipper.InstallationTarget{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, it)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading InstallationTarget %s: %w", release, err)
	}
	if it.DeletionTimestamp == nil {
		return false, nil
	}
	return targets.Ended(ctx, w.client, it)
}

// ComesOrGoes reports whether an event of a Release or InstallationTarget decides whether a target's weight counts.
func ComesOrGoes(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || !slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}
