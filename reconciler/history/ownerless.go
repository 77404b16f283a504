// SPDX-License-Identifier: Apache-2.0

package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Ownerless is an object without the owner that its name and labels say, as a restore leaves it that drops owner references.
type Ownerless struct {
	client.Object

	Owner metav1.OwnerReference
}

// Ownerless are the live Releases of an Application that it does not own, and their targets that no Release owns. With nothing to own them,
// they would outlast the Application.
func (h History) Ownerless(app *shipper.Application) (out []Ownerless) {
	for _, live := range h.Live {
		rel := live.Release
		if !stamp.OwnedBy(rel, app) {
			out = append(out, Ownerless{rel, stamp.OwnerReference(app)})
		}
		for _, kind := range []string{"InstallationTarget", "CapacityTarget", "TrafficTarget"} {
			for _, target := range h.targets[kind] {
				if target.GetName() == rel.Name && target.GetDeletionTimestamp().IsZero() && !hasRelease(target) {
					out = append(out, Ownerless{target, stamp.ReleaseReference(rel)})
				}
			}
		}
	}
	return out
}

// hasRelease reports whether a Release owns a target, of whatever name.
func hasRelease(target client.Object) bool {
	for _, ref := range target.GetOwnerReferences() {
		if ref.Kind == "Release" {
			return true
		}
	}
	return false
}
