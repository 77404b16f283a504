// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/reconciler/fleet"
)

func TestAnObjectThatWasJustWrittenIsNotMissing(t *testing.T) {
	i := &installer{}
	i.noteWritten(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "a", Digest: "new"})
	got := []fleet.Health{
		i.absent(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "a", Digest: "old"}),
		i.absent(item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "b", Digest: "new"}),
	}
	if diff := cmp.Diff([]fleet.Health{{Status: "InProgress"}, {Status: "NotFound"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
