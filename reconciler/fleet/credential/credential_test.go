// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// jwt is a token with these claims, as API servers write them.
func jwt(claims string) []byte {
	return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln\n")
}

// Claims of what API servers have issued, shortened.
const (
	bound = `{"aud":["https://kubernetes.default.svc"],"exp":1086400,"iat":1000000,"iss":"https://kubernetes.default.svc",` +
		`"kubernetes.io":{"namespace":"ns","secret":{"name":"robot-1","uid":"s"},"serviceaccount":{"name":"robot","uid":"a"}},` +
		`"nbf":1000000,"sub":"system:serviceaccount:ns:robot"}`
	unbound = `{"exp":1086400,"iat":1000000,"kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"robot","uid":"a"}}}`
	endless = `{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"ns",` +
		`"kubernetes.io/serviceaccount/secret.name":"robot-token","kubernetes.io/serviceaccount/service-account.name":"robot",` +
		`"kubernetes.io/serviceaccount/service-account.uid":"a","sub":"system:serviceaccount:ns:robot"}`
)

func TestRead(t *testing.T) {
	cert, key, err := certutil.GenerateSelfSignedCertKey("here", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := certutil.ParseCertsPEM(cert)
	if err != nil {
		t.Fatal(err)
	}
	born, dies := time.Unix(1000000, 0).UTC(), time.Unix(1086400, 0).UTC()
	robot := Account{Namespace: "ns", Name: "robot", UID: "a", Secret: "robot-1", SecretUID: "s"}
	type data = map[string][]byte
	const renew = shipper.SecretRenewAnnotation
	for name, tc := range map[string]struct {
		data  data
		renew string
		want  Credential
	}{
		"an empty Secret": {nil, "", Credential{}},
		"a token that was revoked leaves its Secret without one": {data{"ca.crt": cert}, "24h", Credential{}},
		"a plain token":                       {data{"token": []byte("abc")}, "", Credential{Kind: Token}},
		"a token with dots that says nothing": {data{"token": []byte("a.b.c")}, "", Credential{Kind: Token}},
		"a token of a TokenRequest that may not be renewed": {
			data{"token": jwt(bound)}, "", Credential{Kind: Token, NotBefore: born, NotAfter: dies, Account: robot},
		},
		"a token that Shipper renews": {
			data{"token": jwt(bound)}, "24h",
			Credential{Kind: Token, NotBefore: born, NotAfter: dies, Account: robot, Life: 24 * time.Hour},
		},
		"a token that is bound to nothing is not renewed": {
			data{"token": jwt(unbound)}, "24h",
			Credential{Kind: Token, NotBefore: born, NotAfter: dies, Account: Account{Namespace: "ns", Name: "robot", UID: "a"},
				Problem: "the annotation " + renew + " is there, but the token is none that is bound to a Secret of the cluster"},
		},
		"a token that does not end": {
			data{"token": jwt(endless), "ca.crt": cert}, "",
			Credential{Kind: Token, Account: Account{Namespace: "ns", Name: "robot", UID: "a", Secret: "robot-token"}},
		},
		"a life that is too short": {
			data{"token": jwt(bound)}, "9m",
			Credential{Kind: Token, NotBefore: born, NotAfter: dies, Account: robot,
				Problem: "the annotation " + renew + ` is "9m" and must be a duration of 10m0s at least`},
		},
		"a client certificate": {
			data{"tls.crt": cert, "tls.key": key, "tls.ca": cert}, "",
			Credential{Kind: Certificate, NotBefore: parsed[0].NotBefore, NotAfter: parsed[0].NotAfter},
		},
		"a client certificate that is none": {data{"tls.crt": []byte("x")}, "", Credential{Kind: Certificate}},
		"a token goes before a certificate, as in the original": {
			data{"token": []byte("abc"), "tls.crt": cert, "tls.key": key}, "", Credential{Kind: Token},
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: tc.data}
			if tc.renew != "" {
				secret.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{renew: tc.renew}}
			}
			if diff := cmp.Diff(tc.want, Read(secret)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	born := time.Unix(0, 0)
	for name, tc := range map[string]struct {
		c           Credential
		renew, warn time.Duration // after its birth
	}{
		"a token of a day that is renewed": {
			Credential{NotAfter: born.Add(24 * time.Hour), Life: 24 * time.Hour}, 6 * time.Hour, 12 * time.Hour,
		},
		"a token of a day that is not renewed": {Credential{NotAfter: born.Add(24 * time.Hour)}, 6 * time.Hour, 16 * time.Hour},
		"a certificate of a year":              {Credential{NotAfter: born.Add(8760 * time.Hour)}, 2190 * time.Hour, 8040 * time.Hour},
		"the API server gave less than was asked": {
			Credential{NotAfter: born.Add(time.Hour), Life: 24 * time.Hour}, 15 * time.Minute, 30 * time.Minute,
		},
	} {
		tc.c.NotBefore = born
		if renew, warn := tc.c.RenewAt().Sub(born), tc.c.WarnAt().Sub(born); renew != tc.renew || warn != tc.warn {
			t.Errorf("%s: renewed after %s, warned of after %s; want %s and %s", name, renew, warn, tc.renew, tc.warn)
		}
	}
}
