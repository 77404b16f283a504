// SPDX-License-Identifier: Apache-2.0

// Package drift compares objects in clusters with what they were written from, and words the differences for status. What it knows of
// objects that were compared is in memory only.
package drift
