// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func TestShipyardsThatAreRefused(t *testing.T) {
	const unnamed = "this shipyard has no metadata.name: give the name of the project with --name NAME"
	for sentence, c := range map[string]struct{ in, name, want string }{
		"a version that is not known": {
			in:   "{apiVersion: spec.keptn.sh/0.3.0, kind: Shipyard, spec: {stages: [{name: a}]}}",
			want: "document 1: version 0.3.0 is not known: 0.1.x and 0.2.x are",
		},
		"no stages":       {in: "stages: []", want: "document 1: stages: a shipyard has at least one stage"},
		"a file of 0.1.x": {in: "stages: [{name: a}]", want: "document 1: " + unnamed},
		"two files of one project": {
			in: "stages: [{name: a}]\n---\nstages: [{name: b}]\n", name: "shop",
			want: "document 2: document 1 makes the Shipyard shop, too: rename one",
		},
		"two files that have no name": {
			in: "stages: [{name: a}]\n---\nstages: [{name: b}]\n", want: "document 1: " + unnamed + "\ndocument 2: " + unnamed,
		},
		"a name of which nothing is left": {
			in:   "{version: 0.2.0, kind: Shipyard, metadata: {name: _}, spec: {stages: [{name: a}]}}",
			want: `document 1: metadata.name: "_" cannot be the name of an object: give another one with --name NAME`,
		},
		"a key twice": {in: "stages: [{name: a, name: b}]", want: `document 1: yaml: unmarshal errors: line 1: key "name" already set in map`},
		"a file that is too large": {
			in: "stages: [{name: a}]\n#" + strings.Repeat("a", maxShipyard), want: "document 1: it has 1024 KiB: 1024 are the most for a shipyard",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := convert(t.Context(), []byte(c.in), settings{shipyard: c.name})
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
	const in = "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {name: shop}\nspec: {stages: [{name: dev, " +
		"sequences: [{name: delivery, tasks: [{name: deployment}]}]}]}\n"
	for sentence, c := range map[string]struct {
		in   string
		args []string
		code int
		want string
	}{
		"none":                    {in, nil, 0, "  name: shop\nspec:"},
		"one":                     {in, []string{"-n", "shop"}, 0, "  name: shop\n  namespace: shop\nspec:"},
		"a person has to look":    {"stages: [{nam: dev}]", []string{"--name", "shop"}, 3, "# review: Shipyard shop: stages[0].nam (line 1): "},
		"a person has looked":     {"stages: [{nam: dev}]", []string{"--name", "shop", "--accept"}, 0, "\n  name: shop\n"},
		"the name is missing":     {"stages: [{name: dev}]", nil, 1, ""},
		"the name cannot be":      {"stages: [{name: dev}]", []string{"--name", "Shop"}, 2, ""},
		"the file has a name":     {in, []string{"--name", "other"}, 0, "  name: shop\nspec:"},
		"files beside a shipyard": {"objectives: [{sli: errors}]", nil, 3, "# review: SLO file: standard input:1: is left out: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, _, err := run(t, []byte(c.in), append([]string{"-f", "-"}, c.args...)...)
			if cli.ExitCode(err) != c.code || !bytes.Contains([]byte(out), []byte(c.want)) {
				t.Errorf("exit code %d, %v\n%s", cli.ExitCode(err), err, out)
			}
		})
	}
}

// TestConvertedShipyardsAreAdmitted validates them by the schema and by the rules of the webhook, and compares the exit code with the
// reviews: files without a review are those in which nothing behaves differently.
func TestConvertedShipyardsAreAdmitted(t *testing.T) {
	var lossless []string
	for _, name := range keptnInputs {
		_, out := converting(t, name)
		for _, one := range out.yards {
			if one.shipyard == nil {
				continue
			}
			validateBySchema(t, "shipyards", one.shipyard)
			errs := rules.Validate("shop", &one.shipyard.Spec, field.NewPath("spec"))
			for _, problem := range validation.IsValidLabelValue(one.shipyard.Name) {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), one.shipyard.Name, problem))
			}
			if len(errs) > 0 {
				t.Errorf("%s: %v", name, errs)
			}
		}
		if len(out.reviews()) == 0 {
			lossless = append(lossless, name)
		}
	}
	if diff := cmp.Diff([]string{"keptn-measured", "keptn-nameless", "keptn-plain"}, lossless); diff != "" {
		t.Errorf("files without a review (-want +got):\n%s", diff)
	}
}

func TestReviewsNameTheLinesOfAFile(t *testing.T) {
	const in = "# a comment\n---\nversion: 0.2.0\nkind: Shipyard\nmetadata: {name: a}\nspec:\n  stages:\n  - name: a\n    sequence: []\n" +
		"    sequences:\n    - {name: b, tasks: [{name: deployment, propertys: {a: b}}]}\n" +
		"---\n# the second\nstages:\n- name: b\n  strategy: direct\n"
	out, err := convert(t.Context(), []byte(in), settings{shipyard: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`Shipyard a: spec.stages[0].sequence (line 9): is no key of a shipyard, and is left out; did you mean "sequences"?`,
		`Shipyard a: spec.stages[0].sequences[0].tasks[0].propertys (line 11): is no key of a shipyard, and is left out; did you mean ` +
			`"properties"?`,
		"Shipyard shop: stages[0].strategy (line 16): is no key of a shipyard, and is left out: keep it in a comment or an annotation of the " +
			"Shipyard",
	}
	if diff := cmp.Diff(want, out.reviews()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
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
		out, err := convert(t.Context(), raw, settings{shipyard: "shop"})
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
