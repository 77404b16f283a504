// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// applicationKinds are kubectl's names of the kind, before a slash.
var applicationKinds = []string{
	"app", "apps", "application", "applications", "application." + shipper.GroupName, "applications." + shipper.GroupName,
}

// ApplicationKey names an Application. arg may be as kubectl prints it, KIND/NAME, or as `rollout status` does, NAMESPACE/NAME.
func ApplicationKey(namespace, arg string) client.ObjectKey {
	before, name, ok := strings.Cut(arg, "/")
	switch {
	case !ok:
		return client.ObjectKey{Namespace: namespace, Name: arg}
	case slices.Contains(applicationKinds, before):
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Namespace: before, Name: name}
}

// ReadApplication reads an Application and its own Releases with a valid generation, oldest first. It leaves out those that are being
// deleted: Shipper keeps a deleted Release until others serve, but no longer rolls it out.
func ReadApplication(ctx context.Context, c client.Reader, key client.ObjectKey) (*shipper.Application, []*shipper.Release, error) {
	app, releases, _, err := ReadApplicationWithDeleting(ctx, c, key)
	return app, releases, err
}

// ReadApplicationWithDeleting is Read, and deleting are the Releases that are being deleted, oldest first.
func ReadApplicationWithDeleting(ctx context.Context, c client.Reader, key client.ObjectKey) (
	app *shipper.Application, releases, deleting []*shipper.Release, err error,
) {
	app = &shipper.Application{}
	if err := c.Get(ctx, key, app); err != nil {
		return nil, nil, nil, fmt.Errorf("reading application %s: %w%s", key, err, inOtherNamespaces(ctx, c, key, err))
	}
	var list shipper.ReleaseList
	if err := c.List(ctx, &list, OfApplication(key)...); err != nil {
		return nil, nil, nil, fmt.Errorf("listing releases of %s: %w", key, err)
	}
	all := make([]*shipper.Release, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	releases, deleting = SplitDeleting(app, all)
	return app, releases, deleting, nil
}

// SplitDeleting sorts an Application's own Releases, oldest first, and separates those that are being deleted.
func SplitDeleting(app *shipper.Application, all []*shipper.Release) (releases, deleting []*shipper.Release) {
	sorted, _ := stamp.SortByGeneration(stamp.Own(app, all))
	for _, rel := range sorted {
		if rel.DeletionTimestamp.IsZero() {
			releases = append(releases, rel)
		} else {
			deleting = append(deleting, rel)
		}
	}
	return releases, deleting
}

// OfApplication selects the Releases of an Application, and their targets, by its label.
func OfApplication(key client.ObjectKey) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{shipper.AppLabel: key.Name}}
}

// inOtherNamespaces names other namespaces with an Application of a name that was not found, as far as they may be read.
func inOtherNamespaces(ctx context.Context, c client.Reader, key client.ObjectKey, err error) string {
	if !apierrors.IsNotFound(err) {
		return ""
	}
	var all shipper.ApplicationList
	if err := c.List(ctx, &all, client.MatchingFields{"metadata.name": key.Name}); err != nil || len(all.Items) == 0 {
		return ""
	}
	var namespaces []string
	for i := range all.Items {
		namespaces = append(namespaces, all.Items[i].Namespace)
	}
	return "; there is one of that name in " + strings.Join(namespaces, ", ") + ": choose with -n"
}
