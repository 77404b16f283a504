// SPDX-License-Identifier: Apache-2.0

package values

// MaxBytes bounds the values of one release, in bytes. An API server stores no object half as large.
const MaxBytes = 4 << 20

// SizeOf is the approximate size of a value; it stops counting soon after most.
func SizeOf(value any, most int) int {
	size := 8
	switch value := value.(type) {
	case string:
		size += len(value)
	case map[string]any:
		for key, item := range value {
			if size > most {
				break
			}
			size += len(key) + SizeOf(item, most-size)
		}
	case []any:
		for _, item := range value {
			if size > most {
				break
			}
			size += SizeOf(item, most-size)
		}
	}
	return size
}
