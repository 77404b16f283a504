// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// often is more often than any test has an object written: three times the most.
const often = 100

// quarrels returns an error if Shipper has written an object again and again: two targets that may both take over what they share do
// that until all tests have ended, at the expense of all others. Only the newest Release of an Application may: see takeOver.
func quarrels() error {
	var errs []error
	for _, c := range world.members {
		writes, err := pod.Written(c, shipper.ApplicationServiceAccount)
		errs = append(errs, err)
		times := map[string]int{}
		for _, write := range writes {
			if times[write]++; times[write] == often && !strings.HasSuffix(write, " in "+shipper.SystemNamespace) {
				errs = append(errs, fmt.Errorf("in %s Shipper repeats without an end: %s", c.Name, write))
			}
		}
	}
	return errors.Join(errs...)
}
