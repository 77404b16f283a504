// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestASignatureIsBelievedOfTheSameArchiveUnderTheSameDemand(t *testing.T) {
	of := func(secret, digest, signature string) *shipper.Release {
		rel := &shipper.Release{}
		rel.Spec.Environment.Chart = shipper.Chart{Name: "web", Version: "1.0.0", Verify: shipper.ChartVerification{SecretName: secret}}
		rel.Annotations = map[string]string{shipper.ReleaseChartDigestAnnotation: digest}
		if signature != "" {
			rel.Annotations[shipper.ReleaseChartSignatureAnnotation] = signature
		}
		return rel
	}
	const byAnn, byBob = `{"digest":"d","fingerprint":"ANN"}`, `{"digest":"d","fingerprint":"BOB"}`
	for sentence, tc := range map[string]struct {
		others []*shipper.Release
		want   *shipper.ChartSignature
	}{
		"no request yet":       {nil, nil},
		"another was verified": {[]*shipper.Release{of("keys", "d", byAnn)}, &shipper.ChartSignature{Digest: "d", Fingerprint: "ANN"}},
		"the newest counts": {
			[]*shipper.Release{of("keys", "d", byAnn), of("keys", "d", byBob)}, &shipper.ChartSignature{Digest: "d", Fingerprint: "BOB"},
		},
		"another was not verified":                       {[]*shipper.Release{of("keys", "d", "")}, nil},
		"another asked for less":                         {[]*shipper.Release{of("", "d", "")}, nil},
		"another had other keys":                         {[]*shipper.Release{of("theirs", "d", byAnn)}, nil},
		"another has another digest":                     {[]*shipper.Release{of("keys", "e", `{"digest":"e","fingerprint":"ANN"}`)}, nil},
		"what is noted is of another digest than it has": {[]*shipper.Release{of("keys", "e", byAnn)}, nil},
		"what is noted cannot be read":                   {[]*shipper.Release{of("keys", "d", "ANN")}, nil},
		"the note names no signer":                       {[]*shipper.Release{of("keys", "d", `{"digest":"d"}`)}, nil},
	} {
		rel := of("keys", "d", "")
		if diff := cmp.Diff(tc.want, alike(rel, append(tc.others, rel))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}
