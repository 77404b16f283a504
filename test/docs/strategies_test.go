// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestStrategiesOfThePageAreRolledOut rolls every strategy of docs/strategies.md out: a first Release and, where that serves at once, the
// first step of another.
func TestStrategiesOfThePageAreRolledOut(t *testing.T) {
	quickStart(t)
	t.Parallel()
	const page = "docs/strategies.md"
	n := 0
	for _, b := range one(t, page).blocks {
		if b.language != "yaml" || !strings.HasPrefix(b.text, "strategy:") {
			continue
		}
		n++
		var of struct {
			Strategy *shipper.RolloutStrategy `json:"strategy"`
		}
		if err := yaml.UnmarshalStrict([]byte(b.text), &of); err != nil {
			t.Errorf("%s:%d: %v", page, b.line, err)
			continue
		}
		t.Run(of.Strategy.Steps[0].Name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t, one(t, page))
			app := s.application(super, "0.0.1", 4, "eu-west")
			app.Spec.Template.Strategy = of.Strategy
			first := int32(0)
			if of.Strategy.FirstRelease == shipper.FirstReleaseImmediate {
				first = int32(len(of.Strategy.Steps) - 1)
			}
			s.achieved(s.applied(app), first)
			if first == 0 {
				return
			}
			edited := s.application(super, "0.0.2", 4, "eu-west")
			edited.Spec.Template.Strategy = of.Strategy
			s.achieved(s.applied(edited), 0)
		})
	}
	if n < 2 {
		t.Errorf("%s has %d strategies", page, n)
	}
}
