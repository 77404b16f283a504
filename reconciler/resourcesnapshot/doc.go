// SPDX-License-Identifier: Apache-2.0

// Package resourcesnapshot stores the content of Applications with resources in the management cluster, by its digest, and reads it again.
//
// The content of one digest in one namespace is a set of objects: ResourceSnapshots with numbered parts and, for Secrets, Secrets of type
// shipper.booking.com/resources. The first ResourceSnapshot is the head. It owns the others, so that the garbage collector deletes the set
// as a whole and Shipper never has to patch a Secret of a user's namespace. The head belongs to the Releases with the digest and, until
// there is one, to the Application that gets one. Without an owner, Shipper deletes it.
package resourcesnapshot
