// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"
)

func TestOneSlip(t *testing.T) {
	tests := map[[2]string]bool{
		{"nginx", "Nginx"}: true, {"nginx", "ngnix"}: true, {"nginx", "ngin"}: true, {"ngnx", "nginx"}: true, {"nginx", "nginy"}: true,
		{"nginx", "php"}: false, {"nginx", "apache"}: false, {"ab", "xy"}: false, {"nginx", "nginxes"}: false, {"redis", "radix"}: false,
	}
	for names, want := range tests {
		if got := oneSlip(names[0], names[1]); got != want {
			t.Errorf("%v: %v", names, got)
		}
	}
}
