// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	refused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

func TestConnectError(t *testing.T) {
	known := &Error{Cluster: "c", Reason: shipper.SecretMissing, Message: "m"}
	tests := map[string]struct {
		err             error
		reason, message string
	}{
		"what is known already": {fmt.Errorf("x: %w", known), shipper.SecretMissing, "m"},
		"credentials that are not accepted": {
			apierrors.NewUnauthorized("x"), shipper.CredentialsRefused,
			"the API server at https://c does not accept the credentials in the Secret",
		},
		"an account with too few rights": {
			apierrors.NewForbidden(pods, "", errors.New("no")), shipper.CredentialsRefused,
			"the account has too few rights: pods is forbidden: no",
		},
		"another CA": {
			x509.UnknownAuthorityError{}, shipper.SecretInvalid,
			"the certificate of https://c is not signed by the CA in the Secret",
		},
		"another host": {
			x509.HostnameError{Certificate: &x509.Certificate{}, Host: "c"}, shipper.SecretInvalid,
			"the certificate of https://c is for another host: " +
				"x509: certificate is not valid for any names, but wanted to match c",
		},
		"a certificate that has expired": {
			fmt.Errorf("x: %w", x509.CertificateInvalidError{Reason: x509.Expired, Detail: "too late"}), shipper.ClusterUnreachable,
			"the certificate of https://c is not valid: x509: certificate has expired or is not yet valid: too late",
		},
		"silence": {
			context.DeadlineExceeded, shipper.ClusterUnreachable, "the API server at https://c does not answer in time",
		},
		"an answer of megabytes": {
			errors.New(strings.Repeat("x", 8<<20)), shipper.ClusterUnreachable,
			"the API server at https://c does not answer: " + strings.Repeat("x", 1021) + "…",
		},
		"no server": {
			refused, shipper.ClusterUnreachable, "the API server at https://c does not answer: dial: connection refused",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ConnectError("c", "https://c", tc.err)
			want := &Error{Cluster: "c", Reason: tc.reason, Message: tc.message}
			ignoreCause := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Err" }, cmp.Ignore())
			if diff := cmp.Diff(want, got, ignoreCause); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if tc.err != nil && got != known && !errors.Is(got, tc.err) && got.Unwrap() == nil {
				t.Error("the cause is lost")
			}
		})
	}
}
