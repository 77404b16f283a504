// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secretsPolicy is the name of the policy that holds Shipper's own account, and of its binding.
const secretsPolicy = "secrets.shipper.booking.com"

// policyFindings reports whether an object of the second line, or of what holds Shipper's own account, is there and refuses. live is
// nil when there is none.
func policyFindings(want, live *unstructured.Unstructured) []Finding {
	unheld := "RolloutBlocks do not hold while no webhook is asked"
	if want.GetName() == secretsPolicy {
		unheld = "who has stolen the credentials of Shipper's account may write whatever he likes into the Secrets of its namespace"
	}
	name := want.GetKind() + " " + want.GetName()
	if live == nil {
		return []Finding{{Level: Broken, What: "there is no " + name, Why: unheld, Do: setUp}}
	}
	if policy, found, _ := unstructured.NestedString(live.Object, "spec", "failurePolicy"); found && policy != "Fail" {
		return []Finding{{Level: Broken, What: fmt.Sprintf("%s has failurePolicy %s", name, policy), Why: unheld, Do: setUp}}
	}
	actions, found, _ := unstructured.NestedStringSlice(live.Object, "spec", "validationActions")
	if found && !slices.Contains(actions, "Deny") {
		return []Finding{{Level: Broken, What: fmt.Sprintf("%s does not deny: its actions are %v", name, actions), Why: unheld, Do: setUp}}
	}
	return nil
}
