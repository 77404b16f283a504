// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"time"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// ofRun is a run that an Approval names.
type ofRun struct {
	run        *shipper.SequenceRun
	now        time.Time
	reconciler string
}

func (o ofRun) stamp(a *shipper.Approval) { shipyard.StampApproval(a, o.run, o.now) }

func (o ofRun) judge(a *shipper.Approval) error {
	if user := a.Spec.By.Username; user == o.reconciler {
		return response.Forbid(resource, a.Name, fmt.Sprintf("user %q writes what run %s does: another user has to approve it", user, o.run.Name))
	}
	refusal := shipyard.JudgeApproval(a, o.run, o.now)
	switch {
	case refusal == nil:
		return nil
	case len(refusal.Invalid) > 0:
		return response.Invalidate(kind, a.Name, refusal.Invalid)
	}
	return response.Forbid(resource, a.Name, refusal.Forbidden)
}
