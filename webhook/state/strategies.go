// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// StrategyNow is the Strategy, read from the API server; nil when there is none. A user applies Strategies and Applications together, and a
// cache may be behind.
func (f *Reader) StrategyNow(ctx context.Context, key types.NamespacedName) (*shipper.Strategy, error) {
	if f.live == nil || key.Name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return read(ctx, f.live, key, &shipper.Strategy{})
}

// StrategiesNow are the names of at most limit Strategies in a namespace, read from the API server.
func (f *Reader) StrategiesNow(ctx context.Context, namespace string, limit int64) ([]string, error) {
	if f.live == nil || namespace == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(shipper.GroupVersion.WithKind("StrategyList"))
	if err := f.live.List(ctx, found, client.InNamespace(namespace), client.Limit(limit)); err != nil {
		return nil, fmt.Errorf("listing the Strategies of namespace %s: %w", namespace, err)
	}
	var names []string
	for i := range found.Items {
		names = append(names, found.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// TakingStrategy are the Releases that are the newest of their Application and have taken the Strategy, sorted by namespace and
// Application.
func (f *Reader) TakingStrategy(key types.NamespacedName) ([]*shipper.Release, error) {
	return f.newestBy(byStrategy, key)
}

// newestBy are the Releases with a value in an index that are the newest of their Application, sorted by namespace and Application.
func (f *Reader) newestBy(index string, key types.NamespacedName) ([]*shipper.Release, error) {
	rels, err := list[*shipper.Release](f.cached.Releases, index, key.String())
	if err != nil {
		return nil, err
	}
	var out []*shipper.Release
	for _, rel := range rels {
		app, err := f.App(rel)
		if err != nil {
			return nil, err
		}
		if newest := app.Newest(); newest != nil && newest.Name == rel.Name {
			out = append(out, rel)
		}
	}
	slices.SortFunc(out, func(a, b *shipper.Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Labels[shipper.AppLabel], b.Labels[shipper.AppLabel]))
	})
	return out, nil
}

// strategyOf is the key of the Strategy that a Release has taken.
func strategyOf(o any) ([]string, error) {
	rel, ok := o.(*shipper.Release)
	if !ok {
		return nil, nil
	}
	from := stamp.From(&rel.Spec.Environment)
	if from == nil {
		return nil, nil
	}
	return []string{stamp.StrategyKey(from, rel.Namespace).String()}, nil
}
