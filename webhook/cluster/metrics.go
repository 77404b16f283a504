// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
)

// labelName is a label of Prometheus. Those that begin with two underscores are its own.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// validateMetrics validates the server with the metrics of a cluster.
func (w *Webhook) validateMetrics(m *shipper.ClusterMetrics) field.ErrorList {
	if m == nil {
		return nil
	}
	path := field.NewPath("spec", "metrics")
	var errs field.ErrorList
	if shown, why := w.whyNotMetrics(m.Address); why != "" {
		errs = append(errs, field.Invalid(path.Child("address"), shown, why))
	}
	if m.SecretName != "" {
		if wrong := validation.IsDNS1123Subdomain(m.SecretName); len(wrong) > 0 {
			errs = append(errs, field.Invalid(path.Child("secretName"), m.SecretName, strings.Join(wrong, "; ")))
		}
	}
	if label := m.TenantLabel; label != "" && (!labelName.MatchString(label) || strings.HasPrefix(label, "__")) {
		errs = append(errs, field.Invalid(path.Child("tenantLabel"), label,
			"must be the name of a label: letters, digits and _, not with a digit or __ at its beginning"))
	}
	return errs
}

// whyNotMetrics is why an address is not that of a server of metrics, and the address without its secret parts.
func (w *Webhook) whyNotMetrics(address string) (shown, why string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "(URL)", "must be an http or https URL, such as https://prometheus.example.com"
	}
	shown = outward.Redact(u)
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return shown, "must have neither credentials, query nor fragment: credentials belong into the Secret that secretName names"
	}
	if w.Outgoing != nil && w.Outgoing.Check(u) == nil {
		return shown, ""
	}
	if u.Scheme == "http" {
		return shown, "must be https: credentials and values are sent there; --outgoing-urls may list others"
	}
	if err := (outward.Policy{}).Check(u); err != nil { // any https URL that is not of the machine's surroundings
		return shown, err.Error()
	}
	return shown, ""
}
