// SPDX-License-Identifier: Apache-2.0

package strategy

// IsBegun is located.isBegun.
func IsBegun(r Release, cluster string) bool { return locate(r).isBegun(cluster) }
