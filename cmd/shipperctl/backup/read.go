// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// page is how many objects are asked for at once; values may be large.
const page = 200

// pageOf is page, or less where objects are as large as they may be.
func pageOf(kind schema.GroupVersionKind) int64 {
	if kind == snapshotKind {
		return 8
	}
	return page
}

// selection says what a backup has beside Applications.
type selection struct {
	blocks, clusters, charts bool
	// namespace is Shipper's, where the Secrets of Clusters are.
	namespace string
}

// read reads a management cluster. Anything that cannot be read fails it: half a backup is none.
func read(ctx context.Context, from client.Reader, s selection) (found, error) {
	var f found
	for _, l := range []struct {
		kind   schema.GroupVersionKind
		into   *[]object
		wanted bool
	}{
		{applicationKind, &f.applications, true}, {releaseKind, &f.releases, true}, {installationKind, &f.installations, true},
		{capacityKind, &f.capacities, true}, {trafficKind, &f.traffics, true},
		{blockKind, &f.blocks, s.blocks}, {clusterKind, &f.clusters, s.clusters},
		{snapshotKind, &f.charts, s.charts},
	} {
		if !l.wanted {
			continue
		}
		var err error
		if *l.into, err = list(ctx, from, l.kind); err != nil {
			return found{}, err
		}
	}
	if !s.clusters {
		return f, nil
	}
	f.secrets = map[string]*object{}
	for i := range f.clusters {
		name := f.clusters[i].GetName()
		secret, err := get(ctx, from, secretKind, types.NamespacedName{Namespace: s.namespace, Name: name})
		if err != nil {
			return found{}, err
		}
		f.secrets[name] = secret
	}
	var err error
	f.identity, err = get(ctx, from, configMapKind, types.NamespacedName{Namespace: s.namespace, Name: shipper.IdentityName})
	return f, err
}

// list reads all objects of a kind.
func list(ctx context.Context, from client.Reader, kind schema.GroupVersionKind) ([]object, error) {
	var out []object
	next := ""
	for {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := from.List(ctx, l, client.Limit(pageOf(kind)), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", words[kind.Kind], err)
		}
		out = append(out, l.Items...)
		if next = l.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// get reads one object; nil when there is none.
func get(
	ctx context.Context, from client.Reader, kind schema.GroupVersionKind, name types.NamespacedName,
) (*object, error) {
	o := &object{}
	o.SetGroupVersionKind(kind)
	err := from.Get(ctx, name, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", words[kind.Kind], name, err)
	}
	return o, nil
}
