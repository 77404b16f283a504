// SPDX-License-Identifier: Apache-2.0

package chart

// maxValues bounds the values of one release, in bytes. An API server stores no object half as large.
const maxValues = 4 << 20

// sizeOf is the approximate size of a value; it stops counting soon after most.
func sizeOf(value any, most int) int {
	size := 8
	switch value := value.(type) {
	case string:
		size += len(value)
	case map[string]any:
		for key, item := range value {
			if size > most {
				break
			}
			size += len(key) + sizeOf(item, most-size)
		}
	case []any:
		for _, item := range value {
			if size > most {
				break
			}
			size += sizeOf(item, most-size)
		}
	}
	return size
}
