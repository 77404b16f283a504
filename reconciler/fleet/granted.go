// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Granted writes as the account to which administrators grant objects without a namespace by name. Shipper's own account impersonates it,
// so that charts, which are written by the own account, get none of its rights. It reads nothing from caches.
func (m *Member) Granted() client.Client {
	return m.session.granted
}

// newGranted makes the client of the granted account of a namespace.
func (s *session) newGranted(namespace string) (client.Client, error) {
	out, err := client.New(s.cluster.GetConfig(), client.Options{
		HTTPClient: &http.Client{Transport: &impersonator{
			next: s.answers, user: serviceaccount.MakeUsername(namespace, shipper.GrantedServiceAccount),
		}},
		Scheme: s.cluster.GetScheme(), Mapper: s.cluster.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client of the granted account: %w", err)
	}
	return out, nil
}

// impersonator is a transport that sends requests as another user.
type impersonator struct {
	next http.RoundTripper
	user string
}

// RoundTrip sends a copy of a request, because a request must not be changed.
func (i *impersonator) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set(transport.ImpersonateUserHeader, i.user)
	return i.next.RoundTrip(request)
}

// WrappedRoundTripper lets idle connections be closed.
func (i *impersonator) WrappedRoundTripper() http.RoundTripper { return i.next }

var _ utilnet.RoundTripperWrapper = (*impersonator)(nil)
