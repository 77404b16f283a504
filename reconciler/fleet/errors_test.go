// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	refused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

func TestClassify(t *testing.T) {
	type judgement struct {
		Reason string
		Remedy Action
	}
	const internal = shipper.InternalError
	terminating := apierrors.NewForbidden(pods, "x", errors.New("x"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err  error
		want judgement
	}{
		"no connection":                {&Error{Reason: shipper.SecretMissing}, judgement{shipper.SecretMissing, Wait}},
		"credentials ran out":          {apierrors.NewUnauthorized("x"), judgement{shipper.CredentialsRefused, Retry}},
		"an unknown kind":              {&meta.NoKindMatchError{}, judgement{shipper.ChartError, Recheck}},
		"somebody was faster":          {apierrors.NewConflict(pods, "x", nil), judgement{shipper.InProgress, Retry}},
		"the namespace is going":       {terminating, judgement{shipper.NamespaceMissing, Retry}},
		"no right":                     {apierrors.NewForbidden(pods, "x", nil), judgement{internal, Recheck}},
		"not there":                    {apierrors.NewNotFound(pods, "x"), judgement{internal, Recheck}},
		"invalid":                      {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), judgement{internal, Recheck}},
		"too many requests":            {apierrors.NewTooManyRequestsError("x"), judgement{internal, Retry}},
		"the API server is in trouble": {apierrors.NewInternalError(errors.New("x")), judgement{internal, Retry}},
		"no answer":                    {fmt.Errorf("reading: %w", refused), judgement{shipper.ClusterUnreachable, Retry}},
		"no answer in time":            {context.DeadlineExceeded, judgement{shipper.ClusterUnreachable, Retry}},
		"anything else":                {errors.New("x"), judgement{internal, Retry}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got judgement
			got.Reason, got.Remedy = Classify(fmt.Errorf("doing something: %w", tc.err))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

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
		"nobody there": {
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

func TestRetries(t *testing.T) {
	req := ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}}
	retries := NewRetries[ctrl.Request]()
	outcome := func(met ...error) time.Duration {
		t.Helper()
		result, err := retries.Outcome(t.Context(), req, met...)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	recheckable := apierrors.NewForbidden(pods, "x", nil)
	waits := &Error{Reason: shipper.ClusterUnreachable}
	for _, step := range []struct {
		name string
		met  []error
		want time.Duration
	}{
		{"nothing wrong", nil, 0},
		{"an event will come", []error{waits}, 0},
		{"nobody will tell", []error{waits, recheckable}, recheck},
		{"it may pass", []error{recheckable, refused}, 100 * time.Millisecond},
		{"it may pass, a second time", []error{refused}, 200 * time.Millisecond},
		{"it passed", nil, 0},
		{"and came again", []error{refused}, 100 * time.Millisecond},
	} {
		if got := outcome(step.met...); got != step.want {
			t.Errorf("%s: looked at again after %s, want %s", step.name, got, step.want)
		}
	}
	if _, err := retries.Persisted(req, refused); !errors.Is(err, refused) {
		t.Errorf("an error of the management cluster is lost: %v", err)
	}
	result, err := retries.Persisted(req, fmt.Errorf("x: %w", apierrors.NewConflict(pods, "x", nil)))
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("a conflict is %v, %v", result, err)
	}
}

func TestWhoIsOvertakenSaysSoAfterAFewTimesInARow(t *testing.T) {
	conflict := apierrors.NewConflict(pods, "x", nil)
	retries := NewRetries[string]()
	var got []bool
	for range overtakings + 1 {
		got = append(got, retries.Overtaken("x", conflict, conflict))
		if _, err := retries.Outcome(t.Context(), "x", conflict); err != nil {
			t.Fatal(err)
		}
	}
	got = append(got, retries.Overtaken("y", conflict), retries.Overtaken("y", conflict, refused), retries.Overtaken("y"))
	if diff := cmp.Diff([]bool{true, true, true, true, true, false, true, false, false}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
