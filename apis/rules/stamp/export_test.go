// SPDX-License-Identifier: Apache-2.0

package stamp

import "reflect"

// OriginalFields are the names and tags of the fields that are hashed of an environment without a placement.
func OriginalFields() []string {
	var out []string
	for of, i := reflect.TypeFor[original](), 0; i < of.NumField(); i++ {
		out = append(out, of.Field(i).Name+" "+string(of.Field(i).Tag))
	}
	return out
}
