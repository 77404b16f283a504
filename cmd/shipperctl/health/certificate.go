// SPDX-License-Identifier: Apache-2.0

package health

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"

	"shipper.dev/shipper/certs"
)

const (
	// unserved is why a certificate that is not accepted matters.
	unserved = "API servers cannot ask the webhook: with failurePolicy Fail they refuse every write to Shipper's kinds"
	// howToRenew is the remedy for a bad certificate.
	howToRenew = "look at the webhook's log: it makes its certificate by itself, and logs why it cannot. Of cert-manager, look at\n" +
		"its Certificate"
)

// certificateFindings reports whether API servers accept the webhook's certificate. secret is nil when there is none; its
// certificate is not the webhook's if that reads files.
func certificateFindings(secret *corev1.Secret, webhooks []webhook, now time.Time) []Finding {
	var out []Finding
	var untrusting []string
	for _, w := range webhooks {
		if len(w.bundle) == 0 {
			untrusting = append(untrusting, w.name)
		}
	}
	if len(untrusting) > 0 {
		out = append(out, broken("no caBundle is in "+strings.Join(untrusting, ", "), unserved, howToRenew))
	}
	if secret == nil || len(secret.Data[corev1.TLSCertKey]) == 0 {
		if len(untrusting) == 0 {
			out = append(out, warning("the Secret has no certificate",
				"nothing can be said about when it ends", "nothing, if the webhook reads its certificate from files; otherwise "+howToRenew))
		}
		return out
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return append(out, broken(fmt.Sprintf("the Secret has no certificate that works: %v", err), unserved, howToRenew))
	}
	out = append(out, ending("the certificate", pair.Leaf, now)...)
	if authorities, err := certutil.ParseCertsPEM(secret.Data["ca.crt"]); err == nil {
		out = append(out, ending("the authority that signs it", authorities[0], now)...)
	}
	return append(out, refused(pair, webhooks, now)...)
}

// latest is when at the latest whatever lives long should have been renewed.
const latest = 60 * 24 * time.Hour

// ending reports that a certificate has ended, or should have been renewed. Shipper makes it again when a third of its time is
// left; with cert-manager it is the same, but for the authority, which is renewed 90 days before its end.
func ending(what string, c *x509.Certificate, now time.Time) []Finding {
	f := Finding{Level: levelBroken, Why: unserved, Do: howToRenew}
	switch {
	case now.Before(c.NotBefore):
		f.What = fmt.Sprintf("%s is good from %s on", what, c.NotBefore.Format(time.RFC3339))
		f.Do = "look at the clocks of the machines"
	case !now.Before(c.NotAfter):
		f.What = fmt.Sprintf("%s has ended at %s", what, c.NotAfter.Format(time.RFC3339))
	case c.NotAfter.Sub(now) < min(c.NotAfter.Sub(c.NotBefore)/4, latest):
		f.Level = levelWarning
		f.What = fmt.Sprintf("%s ends at %s and was not renewed", what, c.NotAfter.Format(time.RFC3339))
		f.Why = "something keeps it from being renewed. When it has ended, " + unserved
	default:
		return nil
	}
	return []Finding{f}
}

// refused reports webhooks whose CA bundle has not signed the certificate, or whose host the certificate lacks. ending reports what
// has expired.
func refused(pair tls.Certificate, webhooks []webhook, now time.Time) []Finding {
	between := x509.NewCertPool()
	for _, raw := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(c)
		}
	}
	at := now
	if at.Before(pair.Leaf.NotBefore) || !at.Before(pair.Leaf.NotAfter) {
		at = pair.Leaf.NotBefore
	}
	why := map[string][]string{}
	var reasons []string
	for _, w := range webhooks {
		if len(w.bundle) == 0 {
			continue
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(w.bundle)
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: w.host, CurrentTime: at})
		if err == nil {
			continue
		}
		if why[err.Error()] == nil {
			reasons = append(reasons, err.Error())
		}
		why[err.Error()] = append(why[err.Error()], w.name)
	}
	slices.Sort(reasons)
	var out []Finding
	for _, reason := range reasons {
		names := strings.Join(why[reason], ", ")
		out = append(out, broken(fmt.Sprintf("the caBundle of %s does not accept the certificate of the Secret: %s", names, reason),
			unserved, howToRenew))
	}
	return out
}

// certManagerFindings reports why cert-manager has not issued or renewed a Certificate. c is nil if there is none.
func certManagerFindings(name string, c *certmanagerv1.Certificate, now time.Time) []Finding {
	if c == nil {
		return []Finding{broken("there is no Certificate "+name+" of cert-manager, whose CA the webhook configurations are to get",
			"cert-manager renews nothing. When the certificate has ended, "+unserved,
			setUp+" --certificates cert-manager; without cert-manager: "+setUp+" --certificates self")}
	}
	why := certs.ExplainCertificate(c, now)
	if why == "" {
		return nil
	}
	f := warning(fmt.Sprintf("the Certificate %s of cert-manager: %s", name, why),
		"the certificate is not renewed. When it has ended, "+unserved,
		"kubectl describe certificate,certificaterequest,issuer -n "+c.Namespace+"; the log of cert-manager says more")
	if c.Status.NotAfter != nil && !now.Before(c.Status.NotAfter.Time) {
		f.Level, f.Why = levelBroken, unserved
	}
	return []Finding{f}
}

// unrenewedFindings reports a Deployment in mode cert-manager where no Certificate is in use. d is nil when Shipper runs elsewhere.
func unrenewedFindings(d *appsv1.Deployment) []Finding {
	if d == nil || Mode(d) != certs.CertManager {
		return nil
	}
	return []Finding{warning("the webhook runs with --certs=cert-manager, and no Certificate of cert-manager is used",
		"it is not renewed. When it has ended, "+unserved,
		"roll the Deployment out without --certs=cert-manager, or run "+setUp+" --certificates cert-manager")}
}

// Mode is how the webhook of a Deployment gets its certificate.
func Mode(d *appsv1.Deployment) certs.Mode {
	out := certs.Self
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name != "webhook" {
			continue
		}
		for i, arg := range c.Args { // the last one counts
			if mode, found := strings.CutPrefix(arg, "--certs="); found {
				out = certs.Mode(mode)
			} else if arg == "--certs" && i+1 < len(c.Args) {
				out = certs.Mode(c.Args[i+1])
			}
		}
	}
	return out
}
