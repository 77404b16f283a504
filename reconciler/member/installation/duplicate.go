// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// duplicateCluster is the name of a cluster in which a target stays and that is m by another name, if there is one: there are two
// Cluster objects for it. An installation there is the same by either name. While that is not known yet, the error is
// that of the cluster that is being connected to.
func (w *Worker) duplicateCluster(ctx context.Context, it *shipper.InstallationTarget, m *fleet.Member) (string, error) {
	for _, name := range it.Spec.Clusters {
		other, err := w.fleet.Get(ctx, name)
		var same bool
		switch {
		case err == nil:
			same, err = sameCluster(ctx, m, other)
		case !fleet.Pending(err):
			same, err = w.sameAddress(ctx, m.Name, name)
		}
		if err != nil {
			return "", err
		}
		if same {
			return name, nil
		}
	}
	return "", nil
}

// sameCluster compares what every cluster has from its beginning and keeps.
func sameCluster(ctx context.Context, a, b *fleet.Member) (bool, error) {
	var uids [2]types.UID
	for i, m := range []*fleet.Member{a, b} {
		gvk := corev1.SchemeGroupVersion.WithKind("Namespace")
		namespace, err := m.Metadata(ctx, gvk, types.NamespacedName{Name: metav1.NamespaceSystem})
		if err != nil {
			return false, fmt.Errorf("comparing cluster %s with %s: %w", a.Name, b.Name, err)
		}
		uids[i] = namespace.UID
	}
	return uids[0] == uids[1], nil
}

// sameAddress is all that can be compared with a cluster that does not answer.
func (w *Worker) sameAddress(ctx context.Context, a, b string) (bool, error) {
	var addresses [2]string
	for i, name := range []string{a, b} {
		var cluster shipper.Cluster
		if err := w.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		addresses[i] = cluster.Spec.APIMaster
	}
	return addresses[0] == addresses[1], nil
}
