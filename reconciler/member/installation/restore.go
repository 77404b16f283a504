// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
)

// goal is what is stored of the Release that this one goes back to; nil if that is not known, or was not rendered by Application from the
// same chart and values for the same Application: a user may have written what the Release says of its goal.
func (i *installer) goal(ctx context.Context, source Source) (*storedRendering, error) {
	if !i.byApplication() {
		return nil, nil
	}
	if err := i.orders(); err != nil || i.hookOrders.goal == "" {
		return nil, err
	}
	var it shipper.InstallationTarget
	err := i.home.Get(ctx, client.ObjectKey{Namespace: i.it.Namespace, Name: i.hookOrders.goal}, &it)
	if apierrors.IsNotFound(err) || err == nil && it.Labels[shipper.AppLabel] != i.it.Labels[shipper.AppLabel] {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading InstallationTarget %s: %w", i.hookOrders.goal, err)
	}
	if source.Later != nil {
		later := *source.Later
		later.Pinned.Release = it.Name
		source.Later = &later
	}
	from, err := source.fingerprint(render.TargetOf(&it.ObjectMeta, source.Chart.Naming, "", nil))
	if err != nil {
		return nil, err
	}
	stored, err := readStored(ctx, i.member, &it)
	if err != nil || stored == nil || stored.from != from || !stored.known() {
		return nil, err
	}
	return stored, nil
}

// known reports whether what the chart rendered is stored, too.
func (s *storedRendering) known() bool {
	return slices.ContainsFunc(s.objects, func(w wanted) bool { return w.given != nil })
}

// manifest is what the chart rendered.
func (s *storedRendering) manifest() render.Manifest {
	var objects, hooks []unstructured.Unstructured
	for _, w := range s.objects {
		switch {
		case w.given == nil: // a copy
		case w.hook != nil:
			hooks = append(hooks, unstructured.Unstructured{Object: w.given})
		default:
			objects = append(objects, unstructured.Unstructured{Object: w.given})
		}
	}
	return render.Again(objects, hooks)
}

// inUse is what Pods in place of the Release use of an Application. A version of Shipper that did not store what the chart rendered made no
// copies for them.
func (s *storedRendering) inUse(app string) lots.InUse {
	var given, written []*unstructured.Unstructured
	for _, w := range s.objects {
		if w.hook != nil || w.content.GetLabels()[shipper.AppLabel] != app {
			continue
		}
		written = append(written, w.content)
		if w.given != nil {
			given = append(given, &unstructured.Unstructured{Object: w.given})
		}
	}
	if len(given) == 0 {
		given = written
	}
	return lots.InUseOf(given, written)
}

// inUse is what the Pods of the Application's workloads in place use in the cluster now, by what is stored of the Releases whose templates
// these have.
func (i *installer) inUse(ctx context.Context, app string) (lots.InUse, error) {
	if !i.byApplication() {
		return nil, nil
	}
	holders, err := i.holders(ctx, app)
	if err != nil {
		return nil, err
	}
	out := lots.InUse{}
	for _, name := range holders {
		of := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Namespace: i.it.Namespace, Name: name}}
		stored, err := readStored(ctx, i.member, of)
		if err != nil {
			return nil, err
		}
		if stored != nil {
			maps.Copy(out, stored.inUse(app))
		}
	}
	return out, nil
}

// holders are the Releases whose templates the workloads in place of the Application have in the cluster, by name.
func (i *installer) holders(ctx context.Context, app string) ([]string, error) {
	anchors, err := anchorsBut(ctx, i.member.Client(), i.it, client.InNamespace(i.it.Namespace), client.MatchingLabels{shipper.AppLabel: app})
	if err != nil {
		return nil, err
	}
	out, seen := map[string]bool{}, map[string]bool{}
	for _, entry := range inventories(i.member, anchors) {
		if !entry.InPlace || seen[entry.String()] {
			continue
		}
		seen[entry.String()] = true
		live, err := i.member.Metadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name := live.Labels[shipper.OwnedByLabel]; name != "" && live.Labels[shipper.AppLabel] == app {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out)), nil
}
