// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// ReservedPrefix begins the keys of Shipper's own annotations, and of those labels that the original did not have.
const ReservedPrefix = GroupName + "/"

// ReservedLabel tells whether only Shipper sets a label on objects in application clusters. Traffic, capacity and ownership
// are decided by these labels.
func ReservedLabel(key string) bool {
	switch key {
	case AppLabel, ReleaseLabel, ReleaseHashLabel, OwnedByLabel, TrafficStatusLabel, LBLabel, ProofLabel:
		return true
	}
	return strings.HasPrefix(key, ReservedPrefix)
}

// ReservedAnnotation tells whether only Shipper sets an annotation on Pods.
func ReservedAnnotation(key string) bool {
	return strings.HasPrefix(key, ReservedPrefix)
}
