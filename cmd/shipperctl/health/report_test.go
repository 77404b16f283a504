// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// examined are checks of which one is well, one is warned of and one is broken.
func examined() []Check {
	return []Check{
		{Title: "kinds"},
		{"webhooks", []Finding{{Level: levelWarning, What: "failurePolicy is Ignore", Why: "writes pass", Do: "shipperctl clusters join"}}},
		{"rights", []Finding{{Level: levelBroken, What: "the account may not:\nget secrets\nlist pods", Why: "Shipper cannot work", Do: setUp}}},
	}
}

func TestReportForPrograms(t *testing.T) {
	const want = `{
  "broken": 1,
  "warnings": 1,
  "checks": [
    {
      "title": "kinds",
      "findings": []
    },
    {
      "title": "webhooks",
      "findings": [
        {
          "level": "warning",
          "what": "failurePolicy is Ignore",
          "why": "writes pass",
          "do": "shipperctl clusters join"
        }
      ]
    },
    {
      "title": "rights",
      "findings": [
        {
          "level": "BROKEN",
          "what": "the account may not:\nget secrets\nlist pods",
          "why": "Shipper cannot work",
          "do": "shipperctl clusters setup management"
        }
      ]
    }
  ]
}
`
	var out bytes.Buffer
	if err := cli.JSON.Print(&out, Sum(examined()), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReportForPeople(t *testing.T) {
	for width, want := range map[int]string{
		0: `
ok       kinds
warning  webhooks: failurePolicy is Ignore
           why: writes pass
           do:  shipperctl clusters join
BROKEN   rights: the account may not:
                get secrets
                list pods
           why: Shipper cannot work
           do:  shipperctl clusters setup management
`,
		40: `
ok       kinds
warning  webhooks: failurePolicy is
         Ignore
           why: writes pass
           do:  shipperctl clusters join
BROKEN   rights: the account may not:
                get secrets
                list pods
           why: Shipper cannot work
           do:  shipperctl clusters
                setup management
`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), Sum(examined()).Text(width)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}
