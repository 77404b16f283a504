// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"shipper.dev/shipper/apis/rules/block"
)

// stops reports whether err is one that every other write would meet.
func stops(err error) bool {
	var dial *net.OpError
	return err != nil && (unanswered(err) || errors.As(err, &dial) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err))
}

// unanswered reports whether an API server says that the webhook does not answer it.
func unanswered(err error) bool { return strings.Contains(err.Error(), "failed calling webhook") }

// advise adds to err what a person can do about it, where that is known.
func advise(err error) error {
	var dial *net.OpError
	advice := ""
	switch {
	case err == nil:
		return nil
	case unanswered(err):
		advice = "The webhook is down with the rest of Shipper, and its failurePolicy is Fail. Let writes pass while it is down:\n" +
			"  shipperctl clusters setup management --webhook-ignore\n" +
			"Then run this again: it goes on where it stopped. When Shipper runs again, `shipperctl clusters join` sets Fail."
	case meta.IsNoMatchError(err):
		advice = "This management cluster is not set up, or your context points to another one: see `kubectl config " +
			"current-context`, or run `shipperctl clusters setup management` first."
	case block.RefusedBy(err) != "":
		advice = "RolloutBlocks hold what is restored, as they hold everything. Lift them, or scale the webhook down with the rest of " +
			"Shipper, and run this again: it goes on where it stopped."
	case apierrors.IsForbidden(err):
		advice = "Restoring needs the verbs get, create, patch and stamp on applications, releases and the three targets, and " +
			"update on their status; cluster-admin has them."
	case apierrors.IsUnauthorized(err):
		advice = "The cluster does not accept the credentials of this context. Log in again, or choose another context."
	case errors.As(err, &dial):
		advice = "The API server cannot be reached from here. Check that the cluster is up and that the context in the " +
			"kubeconfig has its address."
	default:
		return err
	}
	return fmt.Errorf("%w\n%s", err, advice)
}
