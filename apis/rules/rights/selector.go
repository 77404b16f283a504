// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FormatSelector is the annotation app.selected-by that records a user.
func FormatSelector(who authenticationv1.UserInfo) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // the policy control.shipper.booking.com writes the same text
	if err := encoder.Encode(shipper.Selector{Username: who.Username, UID: who.UID, Groups: who.Groups}); err != nil {
		return "", fmt.Errorf("encoding the user: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// ParseSelector is the user that an annotation records; false if it records none.
func ParseSelector(annotation string) (authenticationv1.UserInfo, bool) {
	var s shipper.Selector
	if err := json.Unmarshal([]byte(annotation), &s); err != nil || s.Username == "" {
		return authenticationv1.UserInfo{}, false
	}
	return authenticationv1.UserInfo{Username: s.Username, UID: s.UID, Groups: s.Groups}, true
}
