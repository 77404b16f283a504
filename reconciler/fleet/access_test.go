// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// pair is a certificate that signed itself, and its key.
func pair(t *testing.T) (cert, key []byte) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("here", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestNewAccess(t *testing.T) {
	cert, key := pair(t)
	type data = map[string][]byte
	const here, wrong = "https://here", shipper.SecretInvalid
	insecure := map[string]string{shipper.SecretSkipTLSVerifyAnnotation: "true"}
	noURL := shipper.TargetClusterClientError
	tests := map[string]struct {
		url         string
		data        data
		annotations map[string]string
		reason      string // empty: it is fine
		says        string
	}{
		"a token and its CA":                    {here, data{"token": []byte("t"), "ca.crt": cert}, nil, "", ""},
		"a token without a CA":                  {here, data{"token": []byte("t")}, nil, "", ""},
		"a client certificate":                  {here, data{"tls.crt": cert, "tls.key": key, "tls.ca": cert}, nil, "", ""},
		"a CA is ignored where insecure is set": {here, data{"token": []byte("t"), "ca.crt": []byte("x")}, insecure, "", ""},
		"no Secret":                             {here, nil, nil, shipper.SecretMissing, `"system/c"`},
		"an empty Secret":                       {here, data{}, nil, wrong, `neither "token" nor`},
		"an empty token":                        {here, data{"token": []byte(" \n")}, nil, wrong, `empty "token"`},
		"a CA that is none": {
			here, data{"token": []byte("t"), "ca.crt": []byte("x")}, nil, wrong, "not a PEM",
		},
		"a certificate without its key": {here, data{"tls.crt": cert}, nil, wrong, "neither"},
		"a key that does not fit":       {here, data{"tls.crt": cert, "tls.key": cert}, nil, wrong, "do not work"},
		"no URL":                        {"", data{"token": []byte("t")}, nil, noURL, "spec.apiMaster"},
		"a URL that is none":            {"::", data{"token": []byte("t")}, nil, noURL, "spec.apiMaster"},
		"a URL of something else":       {"ftp://here", data{"token": []byte("t")}, nil, noURL, "ftp"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: shipper.ClusterSpec{APIMaster: tc.url}}
			var secret *corev1.Secret
			if tc.data != nil {
				secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Data: tc.data}
			}
			access, err := NewAccess(cluster, secret, "system/c")
			var known *Error
			switch errors.As(err, &known); {
			case tc.reason == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tc.reason == "" && (access.Config.UserAgent != UserAgent || access.Config.QPS != -1):
				t.Errorf("config is %+v", access.Config)
			case tc.reason != "" && (known == nil || known.Reason != tc.reason || !strings.Contains(known.Message, tc.says)):
				t.Errorf("error is %+v, want %s … %s", err, tc.reason, tc.says)
			}
		})
	}
}

func TestFingerprintsDifferWhenAccessDoes(t *testing.T) {
	cert, key := pair(t)
	seen := map[string]string{}
	for name, a := range map[string]struct {
		url  string
		data map[string][]byte
		skip string
	}{
		"one":             {"https://here", map[string][]byte{"token": []byte("t")}, ""},
		"another host":    {"https://there", map[string][]byte{"token": []byte("t")}, ""},
		"another token":   {"https://here", map[string][]byte{"token": []byte("u")}, ""},
		"a CA":            {"https://here", map[string][]byte{"token": []byte("t"), "ca.crt": cert}, ""},
		"no verification": {"https://here", map[string][]byte{"token": []byte("t")}, "true"},
		"a certificate":   {"https://here", map[string][]byte{"tls.crt": cert, "tls.key": key}, ""},
	} {
		access, err := NewAccess(&shipper.Cluster{Spec: shipper.ClusterSpec{APIMaster: a.url}}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{shipper.SecretSkipTLSVerifyAnnotation: a.skip}},
			Data:       a.data,
		}, "s")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[access.Fingerprint]; ok {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[access.Fingerprint] = name
	}
}

// tokenOf is a token that says whose it is.
func tokenOf(account, uid, rest string) []byte {
	claims := fmt.Sprintf(`{"kubernetes.io":{"namespace":"ns","serviceaccount":{"name":%q,"uid":%q}},"jti":%q}`, account, uid, rest)
	return []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + rest)
}

func TestTokensOfOneAccountHaveOneFingerprint(t *testing.T) {
	of := func(token []byte) string {
		t.Helper()
		access, err := NewAccess(&shipper.Cluster{Spec: shipper.ClusterSpec{APIMaster: "https://here"}},
			&corev1.Secret{Data: map[string][]byte{"token": token}}, "s")
		if err != nil {
			t.Fatal(err)
		}
		return access.Fingerprint
	}
	first := of(tokenOf("robot", "1", "a"))
	if first != of(tokenOf("robot", "1", "b")) {
		t.Error("a renewed token ends the connection")
	}
	for name, token := range map[string][]byte{
		"another account's":             tokenOf("other", "2", "a"),
		"an account's of the same name": tokenOf("robot", "2", "a"),
		"a plain one":                   []byte("robot"),
	} {
		if first == of(token) {
			t.Errorf("%s token does not end the connection", name)
		}
	}
}

func TestARevokedTokenIsNoEmptySecret(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"ca.crt": []byte("x")}}
	secret.Annotations = map[string]string{shipper.SecretRevokedAnnotation: "2026-11-21T10:00:00Z"}
	_, err := NewAccess(&shipper.Cluster{Spec: shipper.ClusterSpec{APIMaster: "https://here"}}, secret, "system/c")
	var known *Error
	if !errors.As(err, &known) || known.Reason != shipper.CredentialsRevoked ||
		!strings.Contains(known.Message, "`shipperctl clusters join`") {
		t.Errorf("it is %+v", err)
	}
}
