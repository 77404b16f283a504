// SPDX-License-Identifier: Apache-2.0

package root

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestVersionsForPrograms holds the names that programs read.
func TestVersionsForPrograms(t *testing.T) {
	const want = `client:
  go: go1.26.8
  modified: true
  revision: 5f0a
  time: "2026-11-20T13:00:00Z"
  version: v1.2.3
server:
  address: https://10.0.0.1:6443
  kubernetes: v1.37.1
`
	told := Versions{
		Client: buildInfo{Version: "v1.2.3", Revision: "5f0a", Modified: true, Time: "2026-11-20T13:00:00Z", Go: "go1.26.8"},
		Server: &serverVersion{Kubernetes: "v1.37.1", Address: "https://10.0.0.1:6443"},
	}
	var out bytes.Buffer
	if err := cli.YAML.Print(&out, told, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
