// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of shipper.booking.com/v1alpha1, their conditions, labels, annotations and names.
//
// The wire format is that of the original Shipper: objects written for it decode here, and objects served here decode with
// its types. Fields that the original did not have are optional additions.
//
// Glossary. The contender is the newest Release of an Application; the incumbent is the newest complete one before it.
// A strategy is a list of steps, each saying how much capacity (percent of replicas) and traffic (relative weight) the
// contender and the incumbent have. The management cluster holds these kinds; application clusters hold the workloads.
//
// +kubebuilder:object:generate=true
// +groupName=shipper.booking.com
package v1alpha1
