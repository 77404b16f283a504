// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestBlockThatIsNotEnforced checks that such a block refuses nothing, and warns the user or annotates the audit log.
func TestBlockThatIsNotEnforced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		is       shipper.RolloutBlockEnforcement
		noted    string // key of the audit annotation
		warnings int    // for each write
	}{
		{"it warns", shipper.RolloutBlockWarn, "blocks-warned", 1},
		{"it is noted", shipper.RolloutBlockAudit, "blocks-audited", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			dev, heard := s.as("dev")
			rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) { spec.Enforcement = tc.is })
			block := rb.Namespace + "/" + rb.Name
			warned := func(doing string) {
				t.Helper()
				if got := heard.about(block, "Simulate rollout block", "testUser"); len(got) != tc.warnings {
					t.Errorf("%s: got %d warnings of the block, want %d: %q", doing, len(got), tc.warnings, got)
				}
			}
			dev.applies(dev.application("0.0.1", 4, vanguard))
			warned("creating the application")
			rel := s.Release(0)
			s.WaitsForCommand(rel, 0)
			dev.Steps(rel, 1)
			warned("advancing")
			s.WaitsForCommand(rel, 1)
			s.readyPods(rel, 2)
			s.saysUnblocked(rel)
			s.Must("rehearsing an edit", dev.TryEdit(more, client.DryRunAll))
			warned("editing the application")
			want := []string{"create applications: " + block, "patch releases: " + block, "patch applications: " + block}
			if diff := cmp.Diff(want, s.audited("dev", tc.noted)); diff != "" {
				t.Errorf("what the audit log has of the block (-want +got):\n%s", diff)
			}
		})
	}
}
