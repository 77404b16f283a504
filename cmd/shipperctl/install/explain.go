// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explain says what was being done when err came, and what to do about it where that is known.
func explain(title string, err error) error {
	first, size := utf8.DecodeRuneInString(title)
	doing := string(unicode.ToLower(first)) + title[size:]
	if advice := advise(err); advice != "" {
		return fmt.Errorf("%s: %w\n%s", doing, err, advice)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// advise returns what a person can do about err, or nothing.
func advise(err error) string {
	var dial *net.OpError
	switch {
	case strings.Contains(err.Error(), "failed calling webhook"):
		return "The webhook does not answer, and its failurePolicy is Fail. Start Shipper and run this again, or add " +
			"--webhook-ignore to let writes pass while it is down."
	case apierrors.IsForbidden(err):
		return "Setting up a cluster needs the rights of its administrator. Ask for cluster-admin, for example: " +
			"kubectl create clusterrolebinding me --clusterrole cluster-admin --user YOU"
	case apierrors.IsUnauthorized(err):
		return "The cluster does not accept the credentials of this context. Log in again, or choose another context."
	case errors.As(err, &dial):
		return "The API server cannot be reached from here. Check that the cluster is up and that the context in the " +
			"kubeconfig has its address."
	default:
		return ""
	}
}
