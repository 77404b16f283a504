// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestWhoWritesAnOverrideOfAReleaseHasAskedForIt: the author of an override changes what is installed, and would approve it otherwise.
func TestWhoWritesAnOverrideOfAReleaseHasAskedForIt(t *testing.T) {
	const account = "system:serviceaccount:team:ci"
	for sentence, c := range map[string]struct {
		authors []string
		earlier []string
		want    []string
		account string
	}{
		"no overrides":                   {nil, nil, []string{"ann"}, ""},
		"of two users":                   {[]string{"bob", "eve"}, nil, []string{"ann", "bob", "eve"}, ""},
		"of an account of the namespace": {[]string{"bob", account}, nil, []string{"ann", "bob", account}, account},
		"of an account of another": {
			[]string{"system:serviceaccount:gitops:a"}, nil, []string{"ann", "system:serviceaccount:gitops:a"}, "",
		},
		"of a user whose name was not kept": {[]string{""}, nil, []string{"ann", ""}, ""},
		"of a user who changed what others wrote": {
			[]string{"bob"}, []string{"eve", "dan"}, []string{"ann", "bob", "eve", "dan"}, "",
		},
		"of a user who changed what an account wrote": {[]string{"bob"}, []string{account}, []string{"ann", "bob", account}, account},
	} {
		t.Run(sentence, func(t *testing.T) {
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Annotations: map[string]string{shipper.ReleaseRequestedByAnnotation: "ann"},
			}}
			for _, by := range c.authors {
				rel.Spec.Overrides = append(rel.Spec.Overrides, shipper.ReleaseOverride{
					Name: "team/a", RequestedBy: by, EarlierWriters: c.earlier,
				})
			}
			if diff := cmp.Diff(c.want, Requesters(rel)); diff != "" {
				t.Error(diff)
			}
			if got := AccountRequester(rel); got != c.account {
				t.Errorf("the account is %q, want %q", got, c.account)
			}
		})
	}
}
