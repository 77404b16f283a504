// SPDX-License-Identifier: Apache-2.0

// Package index makes indexes of caches that are read in one namespace at a time.
package index

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Within makes an index of a cache over the objects of obj's kind. Clients that read from the cache find by it when they list with
// client.InNamespace and client.MatchingFields{name: value}; without a namespace they find nothing.
//
// IndexField of controller-runtime keeps as much again, for lists of all namespaces. Its clients look for entries of these names.
func Within(ctx context.Context, c cache.Informers, obj client.Object, name string, values client.IndexerFunc) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err == nil {
		err = informer.AddIndexers(toolscache.Indexers{"field:" + name: entries(values)})
	}
	if err != nil {
		return fmt.Errorf("indexing %T by %s: %w", obj, name, err)
	}
	return nil
}

// entries are those of an object, of its namespace alone.
func entries(values client.IndexerFunc) toolscache.IndexFunc {
	return func(in any) ([]string, error) {
		object, ok := in.(client.Object)
		if !ok {
			return nil, fmt.Errorf("indexing %T: not an object", in)
		}
		found := values(object)
		out := make([]string, len(found))
		for i, value := range found {
			out[i] = object.GetNamespace() + "/" + value
		}
		return out, nil
	}
}
