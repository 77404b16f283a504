// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAClaimIsReadAsShipperWritesIt(t *testing.T) {
	whole := shipper.RunClaim{
		Namespace: "team", Run: "r-1", UID: "u", EventID: "e", Hold: true, Requesters: []string{`a"b`, "system:serviceaccount:team:<x>"},
	}
	for text, want := range map[string]shipper.RunClaim{
		Claim(whole): whole,
		Claim(shipper.RunClaim{Namespace: "team"}):                       {Namespace: "team"},
		`{"namespace":"team","namespace":"other","run":"r-1","uid":"u"}`: {},
		`{"namespace":"team","NAMESPACE":"other","run":"r-1","uid":"u"}`: {},
		`{"namespace":"team","run":"r-1","uid":"u"} `:                    {},
		"team": {}, "": {},
	} {
		if diff := cmp.Diff(want, ClaimOf(text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}
