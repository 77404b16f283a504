// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func TestShipyardsThatAreRefused(t *testing.T) {
	for sentence, c := range map[string]struct{ in, want string }{
		"unknown keys, each with its line": {
			"# a comment\n---\nversion: 0.2.0\nkind: Shipyard\nspec:\n  stages:\n  - name: a\n    sequence: []\n    sequences:\n" +
				"    - {name: b, tasks: [{name: deployment, propertys: {a: b}}]}\n",
			`document 1: line 8: unknown key "sequence"; line 10: unknown key "propertys"`,
		},
		"an unknown key of the second document": {
			"stages:\n- name: a\n---\n# the second\nstages:\n- name: b\n  strategy: direct\n", `document 2: line 7: unknown key "strategy"`,
		},
		"an unknown key of 0.1 at its line": {"version: 0.1.0\nstages:\n- {name: a, deploy: b}\n", `document 1: line 3: unknown key "deploy"`},
		"a version that is not known": {
			"{apiVersion: spec.keptn.sh/0.3.0, kind: Shipyard, spec: {stages: [{name: a}]}}",
			"document 1: version 0.3.0 is not known: 0.1.x and 0.2.x are",
		},
		"no stages": {"stages: []", "document 1: stages: a shipyard has at least one stage"},
		"two files of one project": {
			"stages: [{name: a}]\n---\nstages: [{name: b}]\n", "document 2: document 1 makes the Shipyard SHIPYARD, too: rename one",
		},
		"a remediation file": {
			"{apiVersion: spec.keptn.sh/0.1.4, kind: Remediation, metadata: {name: a}, spec: {remediations: []}}",
			"document 1: remediation files are not supported yet: Shipper does not do the tasks get-action and remediation; leave the file out, " +
				"and let a sequence with the task rollback take a service back",
		},
		"a remediation file of old": {
			"remediations: [{name: a, actions: []}]",
			"document 1: remediation files are not supported yet: Shipper does not do the tasks get-action and remediation; leave the file out, " +
				"and let a sequence with the task rollback take a service back",
		},
		"a key twice": {"stages: [{name: a, name: b}]", `document 1: yaml: unmarshal errors: line 1: key "name" already set in map`},
		"a file that is too large": {
			"stages: [{name: a}]\n#" + strings.Repeat("a", maxShipyard), "document 1: it has 1024 KiB: 1024 are the most for a shipyard",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := convert(t.Context(), []byte(c.in), settings{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v, want\n%s", err, c.want)
			}
		})
	}
}

func TestNestedAnchorsAreBounded(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		before := "*a" + string(n[0]-1)
		bomb.WriteString("a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat(before+", ", 10), ", ") + "]\n")
	}
	bomb.WriteString("stages: *a8\n")
	if _, err := convert(t.Context(), []byte(bomb.String()), settings{}); err == nil || !strings.Contains(err.Error(), "excessive aliasing") {
		t.Error(err)
	}
	if _, err := convert(t.Context(), make([]byte, maxInput+1), settings{}); err == nil || err.Error() != errTooLarge.Error() {
		t.Error(err)
	}
}

func TestShipyardsHaveTheNamespaceThatIsGiven(t *testing.T) {
	const in = "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {name: shop}\nspec: {stages: [{name: dev}]}\n"
	for sentence, c := range map[string]struct {
		in   string
		args []string
		code int
		want string
	}{
		"none":                    {in, nil, 0, "  name: shop\nspec:"},
		"one":                     {in, []string{"-n", "shop"}, 0, "  name: shop\n  namespace: shop\nspec:"},
		"a person has to look":    {"stages: [{name: dev}]", nil, 3, "# review: Shipyard SHIPYARD: metadata.name: is missing in the file: "},
		"a person has looked":     {"stages: [{name: dev}]", []string{"--accept"}, 0, "\n  name: SHIPYARD\n"},
		"the file is not correct": {"stages: [{nam: dev}]", nil, 1, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, _, err := run(t, []byte(c.in), append([]string{"-f", "-"}, c.args...)...)
			if cli.ExitCode(err) != c.code || !bytes.Contains([]byte(out), []byte(c.want)) {
				t.Errorf("exit code %d, %v\n%s", cli.ExitCode(err), err, out)
			}
		})
	}
}

// FuzzConvert checks of files of Keptn, whatever is in them, that the output is Shipyards that are read again.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"keptn-0.1.yaml", "keptn-0.2.yaml", "keptn-two.yaml"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := convert(t.Context(), raw, settings{})
		if err != nil || len(out.yards) == 0 {
			t.Skip()
		}
		text, err := out.print()
		if err != nil {
			t.Skip()
		}
		for part := range strings.SplitSeq(text, "\n---\n") {
			var yard shipper.Shipyard
			if err := yaml.UnmarshalStrict([]byte(part), &yard); err != nil || yard.Kind == "Shipyard" && len(yard.Spec.Stages) == 0 {
				t.Errorf("%v\n%s", err, part)
			}
		}
	})
}
