// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reference is the chart without its archive, for objects that leave that to their Release.
func (c Chart) Reference() Chart {
	c.Archive = ""
	return c
}
