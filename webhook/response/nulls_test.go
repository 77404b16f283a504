// SPDX-License-Identifier: Apache-2.0

package response_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/webhook/response"
)

func TestNullsOfTheAppliedManifestAreWarnedOf(t *testing.T) {
	const begins, ends = "null in the manifest, which is the same as to leave the field out: ", "; write a value, such as {} for a gate"
	for text, want := range map[string][]string{
		`{"spec":{"strategy":{"steps":[{"name":"a","gate":{}},{"gate":null}],"checks":null}}}`: {
			begins + "spec.strategy.checks, spec.strategy.steps[1].gate" + ends,
		},
		`{"spec":{"strategy":{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null,"g":null}}}`: {
			begins + "spec.strategy.a, spec.strategy.b, spec.strategy.c, spec.strategy.d, spec.strategy.e and others" + ends,
		},
		`{"spec":{"strategy":{"steps":[{"name":"null"}]},"values":{"a":null}}}`: nil,
		`{"spec":{"strategy":null}}`: nil,
		`{"spec":[null]}`:            nil,
		`null`:                       nil,
		`{"spec":null`:               nil,
		``:                           nil,
	} {
		a := &response.Response{}
		a.WarnOfNulls(map[string]string{corev1.LastAppliedConfigAnnotation: text}, "spec", "strategy")
		if diff := cmp.Diff(want, a.Warnings()); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", text, diff)
		}
	}
}
