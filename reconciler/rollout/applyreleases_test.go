// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRetried: controller-runtime does not look when a pass that ends with an error wants the next one, so that nothing may wait for it.
func TestRetried(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "releases"}, "web", nil)
	for sentence, tc := range map[string]struct {
		done releasesDone
		want bool
	}{
		"all was written":                  {releasesDone{scheduling: map[string]error{"web-0": nil}}, false},
		"a write came too late":            {releasesDone{rollout: conflict}, false},
		"a step had no answer":             {releasesDone{rollout: errors.New("timeout")}, true},
		"targets of a Release were unmade": {releasesDone{scheduling: map[string]error{"web-0": errors.New("timeout")}}, true},
	} {
		if got := tc.done.retried(); got != tc.want {
			t.Errorf("%s: retried is %t", sentence, got)
		}
	}
}
