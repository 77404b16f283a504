// SPDX-License-Identifier: Apache-2.0

package response_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

func TestNullsOfTheAppliedManifestAreWarnedOf(t *testing.T) {
	const path = "spec.environment.strategy"
	const why = ": null in the manifest, and missing in the object: " + response.NullGate
	of := func(applied string, gates ...*shipper.StepGate) *shipper.Release {
		out := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: applied}}}
		out.Spec.Environment.Strategy = &shipper.RolloutStrategy{}
		for _, gate := range gates {
			out.Spec.Environment.Strategy.Steps = append(out.Spec.Environment.Strategy.Steps, shipper.RolloutStrategyStep{Gate: gate})
		}
		return out
	}
	within := func(strategy string) string { return `{"spec":{"environment":{"strategy":` + strategy + `}}}` }
	two := within(`{"steps":[{"name":"a","gate":{}},{"gate":null}],"checks":null}`)
	for sentence, tc := range map[string]struct {
		now, old *shipper.Release
		want     []string
	}{
		"a new object":            {of(two, nil, nil), nil, []string{path + ".checks, " + path + ".steps[1].gate" + why}},
		"another manifest":        {of(two, nil, nil), of("", nil, nil), []string{path + ".checks, " + path + ".steps[1].gate" + why}},
		"applied before":          {of(two, nil, nil), of(two, nil), nil},
		"the object has the gate": {of(two, nil, &shipper.StepGate{}), nil, []string{path + ".checks" + why}},
		"more than a message names": {of(within(`{"a":null,"b":null,"c":null,"d":null,"e":null,"f":null,"g":null}`)), nil, []string{
			path + ".a, " + path + ".b, " + path + ".c, " + path + ".d, " + path + ".e, 2 more" + why,
		}},
		"a text":             {of(within(`{"steps":[{"name":"null"}]}`)), nil, nil},
		"another field":      {of(`{"spec":{"environment":{"values":{"a":null}}}}`), nil, nil},
		"the whole":          {of(within("null")), nil, nil},
		"a list":             {of(`{"spec":[null]}`), nil, nil},
		"no object":          {of("null"), nil, nil},
		"no JSON":            {of(`{"spec":null`), nil, nil},
		"without an applied": {of(""), nil, nil},
	} {
		a := &response.Response{}
		response.WarnOfNulls(a, tc.now, tc.old, response.NullGate, path)
		if diff := cmp.Diff(tc.want, a.Warnings()); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", sentence, diff)
		}
	}
}
