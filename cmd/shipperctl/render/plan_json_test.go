// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestPlanForPrograms holds the names that programs read.
func TestPlanForPrograms(t *testing.T) {
	const want = `- application: web
  namespace: shop
  plan:
  - Release web-1 of chart nginx 0.0.2
  release: web-1
  warnings:
  - mind the gap
- application: api
  namespace: shop
  plan: []
  refused: "no"
  warnings: []
`
	told := []planned{
		outcomeOf("shop", "web", []string{"plan: Release web-1 of chart nginx 0.0.2", "mind the gap"}, nil),
		outcomeOf("shop", "api", nil, errors.New("no")),
	}
	var out bytes.Buffer
	if err := cli.YAML.Print(&out, told, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
