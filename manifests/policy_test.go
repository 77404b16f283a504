// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// TestThePolicyRefusesInTheWordsOfTheWebhook: clients find the RolloutBlock behind this text (block.RefusedBy).
func TestThePolicyRefusesInTheWordsOfTheWebhook(t *testing.T) {
	policy, err := manifests.Object(manifests.Policy, "ValidatingAdmissionPolicy", "blocks.shipper.booking.com")
	if err != nil {
		t.Fatal(err)
	}
	text, err := policy.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := `\"` + shipper.BlockedBy + `\"`; !strings.Contains(string(text), want) {
		t.Errorf("the policy does not say %s", want)
	}
}
