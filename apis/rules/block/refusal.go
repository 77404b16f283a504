// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// RefusedBy is the first RolloutBlock, as namespace/name, that a refused write names; empty for every other error. The webhook's refusals
// have a cause of type shipper.CauseRolloutBlock for each block; those of the ValidatingAdmissionPolicy have the text shipper.BlockedBy.
func RefusedBy(err error) string {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return ""
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == shipper.CauseRolloutBlock && cause.Field != "" {
				return cause.Field
			}
		}
	}
	_, said, found := strings.Cut(err.Error(), shipper.BlockedBy)
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(said, " ")
	return strings.TrimRight(name, `",;`)
}
