// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/webhook/response"
)

// maxHeader bounds the value of a header, in bytes.
const maxHeader = 1024

// reserved are the headers that a Check may not set, in canonical form, and why.
var reserved = map[string]string{
	"Authorization":       belongsIntoSecret,
	"Proxy-Authorization": belongsIntoSecret,
	"Cookie":              belongsIntoSecret,
	"Host":                setByShipper,
	"Connection":          setByShipper,
	"Content-Length":      setByShipper,
	"Te":                  setByShipper,
	"Trailer":             setByShipper,
	"Transfer-Encoding":   setByShipper,
	"Upgrade":             setByShipper,
}

const (
	belongsIntoSecret = "belongs into a Secret: name it in secretName"
	setByShipper      = "is set by Shipper from url and body: leave it out"
)

// Servers are those that Checks may name.
type Servers struct {
	// Outgoing is the policy. Nil: they may name none.
	Outgoing *outward.Policy
	// All says that the policy is not known, and that any is allowed.
	All bool
}

func (s Servers) validatePrometheus(p *shipper.PrometheusCheck, path *field.Path) field.ErrorList {
	if p.Address == "" {
		if p.SecretName == "" {
			return nil
		}
		return field.ErrorList{field.Forbidden(path.Child("secretName"), "is for the server at address: give an address, or leave "+
			"secretName out; Shipper has the credentials of each cluster's own server")}
	}
	var errs field.ErrorList
	at := path.Child("address")
	switch u, why := serverOf(p.Address); {
	case strings.Contains(p.Address, "$("):
		errs = append(errs, field.Invalid(at, p.Address, "must not have arguments: queries may"))
	case why == "" && u.RawQuery != "":
		errs = append(errs, field.Invalid(at, outward.Redact(u), "must not have a query"))
	case why != "":
		errs = append(errs, field.Invalid(at, redacted(p.Address), why))
	default:
		errs = append(errs, s.validateAllowed(u, at)...)
	}
	if p.SecretName != "" {
		errs = append(errs, validateName(p.SecretName, path.Child("secretName"))...)
	}
	return errs
}

func (s Servers) validateHTTP(h *shipper.HTTPCheck, path *field.Path, values map[string]string) field.ErrorList {
	var errs field.ErrorList
	if text, err := rules.SubstituteURL(h.URL, values); err == nil { // Substituted returns the other errors of the URL
		if u, why := serverOf(text); why == "" {
			errs = append(errs, s.validateAllowed(u, path.Child("url"))...)
		}
	}
	if h.Body != "" && h.Method != http.MethodPost {
		errs = append(errs, field.Forbidden(path.Child("body"), "is sent by POST only: set method to POST, or leave body out"))
	}
	if h.SecretName != "" {
		errs = append(errs, validateName(h.SecretName, path.Child("secretName"))...)
	}
	return append(errs, validateHeaders(h.Headers, path.Child("headers"))...)
}

// serverOf is the URL of a server, or why a text is none.
func serverOf(text string) (u *url.URL, why string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "must be an http or https URL"
	case u.Hostname() == "":
		return nil, "must name a host"
	case u.User != nil:
		return nil, "must not have credentials: they belong into a Secret, which secretName names"
	case u.Fragment != "":
		return nil, "must not have a fragment"
	}
	return u, ""
}

// redacted is a URL of a user, without its secret parts.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(URL)"
	}
	return outward.Redact(u)
}

// wording is what errors say of servers that Checks may not name.
var wording = outward.Wording{
	NotListed: func(_ outward.Policy, u *url.URL) string {
		return fmt.Sprintf("the URL is not in --outgoing-urls: %s://%s; an administrator of Shipper can add it", u.Scheme, u.Host)
	},
	NotThere: "an address of the machine's surroundings, which Checks do not ask",
}

// validateAllowed refuses a server that --outgoing-urls does not list. The reconciler checks the address when it connects.
func (s Servers) validateAllowed(u *url.URL, path *field.Path) field.ErrorList {
	if s.All {
		return nil
	}
	if s.Outgoing == nil {
		return field.ErrorList{field.Invalid(path, outward.Redact(u), "--outgoing-urls lists no URL: Checks by http and addresses of your "+
			"own are off here; leave prometheus.address out to ask the cluster's own metrics")}
	}
	if err := s.Outgoing.Worded(wording).Check(u); err != nil {
		return field.ErrorList{field.Invalid(path, outward.Redact(u), err.Error())}
	}
	return nil
}

func validateHeaders(headers map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		switch why, is := reserved[canonical]; {
		case !httpguts.ValidHeaderFieldName(name):
			errs = append(errs, field.Invalid(path.Key(name), name, "is no name of a header"))
		case is:
			errs = append(errs, field.Forbidden(path.Key(name), why))
		case seen[canonical]:
			errs = append(errs, field.Duplicate(path.Key(name), canonical))
		case len(headers[name]) > maxHeader:
			errs = append(errs, field.TooLong(path.Key(name), "", maxHeader))
		}
		seen[canonical] = true
	}
	return errs
}

// Substituted returns the errors of the texts of a Check that arguments are put into, with such values. The other error is temporary.
func Substituted(
	ctx context.Context, spec *shipper.CheckSpec, path *field.Path, values map[string]string, p *Parser,
) (field.ErrorList, error) {
	switch {
	case spec.Prometheus != nil:
		return substitutedQueries(ctx, spec.Prometheus.Queries, path.Child("prometheus", "queries"), values, p)
	case spec.HTTP != nil:
		return substitutedRequest(spec.HTTP, path.Child("http"), values), nil
	case spec.Job != nil:
		return substitutedJob(spec.Job.Raw, path.Child("job"), values), nil
	}
	return nil, nil
}

func substitutedQueries(
	ctx context.Context, queries map[string]shipper.CheckQuery, path *field.Path, values map[string]string, p *Parser,
) (field.ErrorList, error) {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		query := string(queries[name])
		text, err := rules.Substitute(query, values)
		if err != nil {
			errs = append(errs, field.Invalid(path.Key(name), shown(query), err.Error()))
			continue
		}
		err = p.parse(ctx, text)
		if errors.Is(err, expression.ErrBusy) {
			return nil, response.Later(err.Error(), time.Second)
		}
		if err != nil {
			why := err.Error()
			if text != query {
				why += "; this is of the query with its arguments: " + shown(text)
			}
			errs = append(errs, field.Invalid(path.Key(name), shown(query), why))
		}
	}
	return errs, nil
}

func substitutedRequest(h *shipper.HTTPCheck, path *field.Path, values map[string]string) field.ErrorList {
	var errs field.ErrorList
	if text, err := rules.SubstituteURL(h.URL, values); err != nil {
		errs = append(errs, field.Invalid(path.Child("url"), h.URL, err.Error()))
	} else if _, why := serverOf(text); why != "" {
		errs = append(errs, field.Invalid(path.Child("url"), redacted(h.URL), why))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		text, err := rules.Substitute(h.Headers[name], values)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("headers").Key(name), shown(h.Headers[name]), err.Error()))
		} else if !httpguts.ValidHeaderFieldValue(text) {
			errs = append(errs, field.Invalid(path.Child("headers").Key(name), shown(text), "is no value of a header: it has control characters"))
		}
	}
	if h.Body == "" {
		return errs
	}
	if _, err := rules.SubstituteJSON([]byte(h.Body), values); err != nil {
		errs = append(errs, field.Invalid(path.Child("body"), shown(h.Body), err.Error()))
	}
	return errs
}
