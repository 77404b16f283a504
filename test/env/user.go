// SPDX-License-Identifier: Apache-2.0

package env

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// As is a copy of an administrator's configuration that acts as a user of groups, and whose first answers are final.
func As(config *rest.Config, name string, groups ...string) *rest.Config {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return impatient{next} }
	return config
}

// impatient takes from answers the advice to ask again, which client-go would follow.
type impatient struct{ next http.RoundTripper }

// RoundTrip is http.RoundTripper.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
