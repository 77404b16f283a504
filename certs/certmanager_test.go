// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestExplainCertificate(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	ready := certmanagerv1.CertificateCondition{Type: certmanagerv1.CertificateConditionReady, Status: cmmeta.ConditionTrue,
		ObservedGeneration: 2}
	notReady := certmanagerv1.CertificateCondition{
		Type: certmanagerv1.CertificateConditionReady, Status: cmmeta.ConditionFalse, Reason: "DoesNotExist",
		Message: "Issuing certificate as Secret does not exist", ObservedGeneration: 2,
	}
	issuing := certmanagerv1.CertificateCondition{Type: certmanagerv1.CertificateConditionIssuing, Status: cmmeta.ConditionTrue,
		Reason: "DoesNotExist"}
	failed := certmanagerv1.CertificateCondition{
		Type: certmanagerv1.CertificateConditionIssuing, Status: cmmeta.ConditionFalse, Reason: "Failed", Message: "the issuer said no",
	}
	for sentence, tc := range map[string]struct {
		status certmanagerv1.CertificateStatus
		want   string
	}{
		"ready": {certmanagerv1.CertificateStatus{Conditions: []certmanagerv1.CertificateCondition{ready},
			RenewalTime: at(time.Hour)}, ""},
		"being renewed in time": {certmanagerv1.CertificateStatus{Conditions: []certmanagerv1.CertificateCondition{ready, issuing},
			RenewalTime: at(-time.Minute)}, ""},
		"cert-manager does not run": {certmanagerv1.CertificateStatus{}, "cert-manager has not looked at it: check that cert-manager runs"},
		"being issued the first time": {
			certmanagerv1.CertificateStatus{Conditions: []certmanagerv1.CertificateCondition{notReady, issuing}},
			"it is not ready (DoesNotExist): Issuing certificate as Secret does not exist; cert-manager is issuing it (DoesNotExist)",
		},
		"attempts have failed": {
			certmanagerv1.CertificateStatus{
				Conditions: []certmanagerv1.CertificateCondition{notReady, failed}, FailedIssuanceAttempts: ptr.To(3), LastFailureTime: at(-time.Hour),
			},
			"it is not ready (DoesNotExist): Issuing certificate as Secret does not exist; the last attempt ended (Failed): the issuer said no; " +
				"failed attempts in a row: 3, the last one at 2026-11-23T11:00:00Z",
		},
		"a renewal is overdue": {
			certmanagerv1.CertificateStatus{
				Conditions: []certmanagerv1.CertificateCondition{ready, failed}, RenewalTime: at(-24 * time.Hour), FailedIssuanceAttempts: ptr.To(1),
			},
			"the last attempt ended (Failed): the issuer said no; failed attempts in a row: 1; its renewal was due at 2026-11-22T12:00:00Z",
		},
		"it was changed and cert-manager has stopped": {
			certmanagerv1.CertificateStatus{Conditions: []certmanagerv1.CertificateCondition{func() certmanagerv1.CertificateCondition {
				old := ready
				old.ObservedGeneration = 1
				return old
			}()}},
			"cert-manager has not looked at its last change: check that cert-manager runs",
		},
	} {
		c := &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.status}
		if got := ExplainCertificate(c, now); got != tc.want {
			t.Errorf("%s:\ngot  %q\nwant %q", sentence, got, tc.want)
		}
	}
}
