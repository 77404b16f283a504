// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestCleansUpAfterATargetThatWasRestoredAndDeletedAtOnce makes the target what a restore makes of it, without status, and
// deletes it before a pass: while the cluster is not known.
func TestCleansUpAfterATargetThatWasRestoredAndDeletedAtOnce(t *testing.T) {
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	s.notInstalled("web-1", west, shipper.ClusterUnreachable)
	var it shipper.InstallationTarget
	s.must(world.management.Get(s.ctx, s.key("web-1"), &it))
	s.must(world.management.Delete(s.ctx, &it))
	s.soon("the old target does not go", func() string {
		err := world.management.Get(s.ctx, s.key("web-1"), &it)
		if apierrors.IsNotFound(err) {
			return ""
		}
		s.must(err)
		was := it.DeepCopy()
		it.Finalizers = nil
		err = world.management.Patch(s.ctx, &it, client.MergeFrom(was))
		return fmt.Sprintf("finalizers %v, %v", was.Finalizers, err)
	})
	restored := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.notInstalled("web-1", west, shipper.ClusterUnreachable)
	s.must(world.management.Delete(s.ctx, restored))
	s.mended(west)
	s.gone(restored)
	if s.deployment(west, "web-1") != nil || s.find(west, "web-1-anchor", &corev1.ConfigMap{}) {
		t.Error("something was left behind")
	}
}
