// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"fmt"
	"slices"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
	"shipper.dev/shipper/reconciler/retry"
)

// pause is the shortest time between two renewals, also of tokens of a cluster whose clock is far from ours.
const pause = time.Minute

// due reports whether a token that was renewed last at some time is to be renewed now.
func due(c credential.Credential, last, now time.Time) bool {
	since := now.Sub(last)
	switch {
	case !c.Renewed() || since < pause:
		return false
	case !now.Before(c.RenewAt()):
		return true
	case last.IsZero(): // a clock that is far behind the cluster's would see the end too late
		return c.NotBefore.Sub(now) > c.Rest()
	}
	return since >= c.Rest()
}

// again is the time until the next action or report; zero for never.
func again(c credential.Credential, last, now time.Time) time.Duration {
	if !c.Ends() {
		return 0
	}
	marks := []time.Time{c.WarnAt(), c.NotAfter}
	if c.Renewed() {
		marks = append(marks, c.RenewAt(), last.Add(c.Rest())) // the second by our clock alone, however far it is from the cluster's
	}
	marks = slices.DeleteFunc(marks, func(mark time.Time) bool { return !now.Before(mark) })
	if len(marks) == 0 {
		return 0
	}
	return max(slices.MinFunc(marks, time.Time.Compare).Sub(now), pause)
}

// reported are the reason and the message about credentials, and about a failed attempt to renew them.
func reported(c credential.Credential, secret string, failed error, now time.Time) fleet.Credentials {
	out := fleet.Credentials{}
	end := c.NotAfter.Format(time.RFC3339)
	if c.Ends() {
		out.NotAfter = c.NotAfter.Unix()
	}
	switch {
	case c.Problem != "":
		out.Reason = shipper.RenewalFailed
		out.Message = fmt.Sprintf("Secret %q cannot be renewed: %s; %s", secret, c.Problem, c.Remedy())
	case !c.Ends():
	case c.Ended(now):
		out.Reason = shipper.CredentialsEnded
		out.Message = fmt.Sprintf("the %s in Secret %q ended at %s; %s", c.Kind, secret, end, c.Remedy())
	case failed != nil:
		out.Reason = shipper.RenewalFailed
		out.Message = fmt.Sprintf("the token in Secret %q ends at %s and could not be renewed: %s; it is tried again, and %s",
			secret, end, retry.Brief(failed), c.Remedy())
	case now.Before(c.WarnAt()):
	case c.Renewed():
		out.Reason = shipper.RenewalFailed
		out.Message = fmt.Sprintf("the token in Secret %q ends at %s and could not be renewed: the cluster cannot be worked with; "+
			"when it can before that, it will be renewed", secret, end)
	default:
		out.Reason = shipper.CredentialsEndSoon
		out.Message = fmt.Sprintf("the %s in Secret %q ends at %s, and Shipper does not renew it; %s", c.Kind, secret, end, c.Remedy())
	}
	return out
}
