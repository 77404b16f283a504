// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// ReservedPrefix starts the keys of Shipper's own annotations, and of the labels that the original did not have.
const ReservedPrefix = GroupName + "/"

// ServesPrefix starts the labels that say which Services a Pod serves: ServesLabel.
const ServesPrefix = "serves." + ReservedPrefix

// BackendPrefix starts the labels that say which Services a Pod is made for: BackendLabel.
const BackendPrefix = "backend." + ReservedPrefix

// ReservedLabel reports whether only Shipper may set a label on objects in application clusters. These labels decide traffic,
// capacity and ownership.
func ReservedLabel(key string) bool {
	switch key {
	case AppLabel, ReleaseLabel, ReleaseHashLabel, OwnedByLabel, TrafficStatusLabel, LBLabel, ProofLabel:
		return true
	}
	return strings.HasPrefix(key, ReservedPrefix) || strings.HasPrefix(key, ServesPrefix) || strings.HasPrefix(key, BackendPrefix)
}

// ServesLabel with value "true" is on the Pods that get the requests of a production Service, by the Service's name. Charts whose
// objects are named by Application may have several such Services.
func ServesLabel(service string) string {
	return ServesPrefix + service
}

// BackendLabel with value "true" is on all Pods that the chart's own selector of a production Service matches in their Release, whether they
// have traffic or not, by the Service's name.
func BackendLabel(service string) string {
	return BackendPrefix + service
}

// ReservedAnnotation reports whether only Shipper may set an annotation on Pods.
func ReservedAnnotation(key string) bool {
	return strings.HasPrefix(key, ReservedPrefix)
}
