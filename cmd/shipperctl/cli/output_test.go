// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/pflag"
)

func TestPrint(t *testing.T) {
	v := []struct {
		Name string `json:"name"`
	}{{"eu"}}
	for given, want := range map[string]string{
		"":      "people\n",
		"table": "people\n",
		"json":  "[\n  {\n    \"name\": \"eu\"\n  }\n]\n",
		"yaml":  "- name: eu\n",
	} {
		var f Format
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(flags)
		if given != "" {
			if err := flags.Parse([]string{"-o", given}); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := f.Print(&out, v, func(int) string { return "people\n" }); err != nil || out.String() != want {
			t.Errorf("-o %q writes %v\n%s", given, err, out.String())
		}
		if people := given == "" || given == "table"; f.ForPeople() != people {
			t.Errorf("-o %q is for people: %t", given, !people)
		}
	}
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	var f Format
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(flags)
	const want = `invalid argument "xml" for "-o, --output" flag: there are json, yaml and table`
	if err := flags.Parse([]string{"-o", "xml"}); err == nil || err.Error() != want {
		t.Error(err)
	}
}
