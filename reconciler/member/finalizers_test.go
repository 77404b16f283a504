// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// A deletion waits for the finalizers of other tools, so their removal wakes what takes part in it: also where one is replaced by another.
func TestAFinalizerThatGoesWakesTargetsAndReleases(t *testing.T) {
	for name, o := range map[string]client.Object{
		"an InstallationTarget": &shipper.InstallationTarget{}, "a CapacityTarget": &shipper.CapacityTarget{},
		"a TrafficTarget": &shipper.TrafficTarget{}, "a Release": &shipper.Release{},
	} {
		o.SetFinalizers([]string{shipper.RolloutFinalizer, "example.com/other"})
		for change, to := range map[string][]string{
			"goes": {shipper.RolloutFinalizer}, "is replaced": {"example.com/third", "example.com/other"},
		} {
			is, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("no object")
			}
			is.SetFinalizers(to)
			if sameMeta(o, is) || !traffic.ComesOrGoes(o, is) {
				t.Errorf("a finalizer of %s %s, and that wakes nothing", name, change)
			}
		}
		if !sameMeta(o, o) || traffic.ComesOrGoes(o, o) {
			t.Errorf("nothing of %s changes, and that wakes", name)
		}
	}
}
