// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Current reports whether the API server has no newer version of app and of its Releases than those in h and, if targets is true, none of
// its targets. It asks for metadata alone, and for no targets of an Application without Releases: targets that a Release has left would
// only refuse the creation of others with their names.
func (r *Reader) Current(ctx context.Context, app *shipper.Application, h History, targets bool) (bool, error) {
	seen := map[string]map[types.UID]string{"Release": {}, "InstallationTarget": {}, "CapacityTarget": {}, "TrafficTarget": {}}
	for _, rel := range h.All {
		seen["Release"][rel.UID] = rel.ResourceVersion
	}
	for kind, objects := range h.targets {
		for _, o := range objects {
			seen[kind][o.GetUID()] = o.GetResourceVersion()
		}
	}
	kinds := []string{"Release"}
	if targets && (len(h.All) > 0 || len(h.targets) > 0) {
		kinds = append(kinds, "InstallationTarget", "CapacityTarget", "TrafficTarget")
	}
	asked, ctx := errgroup.WithContext(ctx)
	same := make([]bool, len(kinds)+1)
	asked.Go(func() error {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(shipper.GroupVersion.WithKind("Application"))
		err := r.live.Get(ctx, client.ObjectKeyFromObject(app), live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading application %s/%s: %w", app.Namespace, app.Name, err)
		}
		same[len(kinds)] = err == nil && live.UID == app.UID && !older(app.ResourceVersion, live.ResourceVersion)
		return nil
	})
	for i, kind := range kinds {
		asked.Go(func() (err error) {
			same[i], err = r.sameAs(ctx, app, kind, seen[kind])
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		return false, err
	}
	for _, ok := range same {
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// sameAs reports whether the API server has the same objects of a kind as were seen, and none of them newer.
func (r *Reader) sameAs(ctx context.Context, app *shipper.Application, kind string, seen map[types.UID]string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	if err != nil {
		return false, fmt.Errorf("listing the %ss of application %s/%s: %w", strings.ToLower(kind), app.Namespace, app.Name, err)
	}
	for i := range list.Items {
		version, ok := seen[list.Items[i].UID]
		if !ok || older(version, list.Items[i].ResourceVersion) {
			return false, nil
		}
	}
	return len(list.Items) == len(seen), nil
}

// older reports whether version a is earlier than b, or whether the two cannot be compared.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
