// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// folderOf writes files to a new folder, which becomes the working directory.
func folderOf(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// yard is a shipyard that is converted without reviews.
func yard(name string) string {
	return "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {name: " + name + "}\nspec: {stages: [{name: dev, sequences: [" +
		"{name: delivery, tasks: [{name: deployment}]}]}]}\n"
}

// shipyardsIn are the names of the Shipyards in an output.
func shipyardsIn(out string) string {
	var names []string
	for line := range strings.Lines(out) {
		if name, is := strings.CutPrefix(line, "  name: "); is {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return strings.Join(names, " ")
}

func TestFilesAndFoldersAreReadAsKubectlDoes(t *testing.T) {
	folderOf(t, map[string]string{
		"b.yaml": yard("b"), "a.yml": yard("a"), "notes.txt": "a: b: c", "in/c.yaml": yard("c") + "---\n" + yard("d"), "empty/notes.txt": "",
		"e.json": `{"apiVersion": "spec.keptn.sh/0.2.2", "kind": "Shipyard", "metadata": {"name": "e"}, "spec": {"stages": [{"name": "dev",` +
			`"sequences": [{"name": "delivery", "tasks": [{"name": "deployment"}]}]}]}}`,
	})
	for sentence, c := range map[string]struct {
		args string
		want string
		code int
	}{
		"two files":                             {"-f b.yaml -f a.yml", "b a", 0},
		"two files with a comma":                {"-f b.yaml,a.yml", "b a", 0},
		"files, one in a folder":                {"-f a.yml -f in/c.yaml", "a c d", 0},
		"a folder, in the order of names":       {"-f .", "a b e", 0},
		"a folder with those in it":             {"-f . -R", "a b e c d", 0},
		"a folder and a file":                   {"-f in -f b.yaml", "c d b", 0},
		"a folder and standard input":           {"-f in -f -", "c d z", 0},
		"standard input is read once":           {"-f - -f -", "z", 0},
		"a pattern":                             {"-f *.yml", "a", 0},
		"a file of another ending":              {"-f in/c.yaml -f notes.txt", "c d", 1},
		"a file that is not there":              {"-f b.yaml -f nowhere.yaml", "", 1},
		"a folder without manifests":            {"-f empty", "", 1},
		"a URL":                                 {"-f https://example.com/rollout.yaml", "", 1},
		"a folder without manifests, and those": {"-f empty -R", "", 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, stderr, err := run(t, []byte(yard("z")), strings.Fields(c.args)...)
			if got := shipyardsIn(out); got != c.want || cli.ExitCode(err) != c.code {
				t.Errorf("%s, exit code %d, want %s and %d: %v\n%s", got, cli.ExitCode(err), c.want, c.code, err, stderr)
			}
		})
	}
}

func TestABrokenDocumentIsNamedByFileAndLineAndTheOthersAreConverted(t *testing.T) {
	const rollout = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {}\n"
	folderOf(t, map[string]string{
		"a.yaml": yard("a") + "---\n# the second\n\n" + rollout + "---\na: b\nkind: c: d\n---\n" + yard("b"),
		"b.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: settings}\n- kind: Rollout\n" +
			"- text\n--- # the last\n" + yard("c"),
		"c.yaml": "---\n" + yard("d") + "...\n" + yard("e") + "---\nkind: a\nkind: b\n",
	})
	out, stderr, err := run(t, nil, "-f", ".")
	want := "error: a.yaml:8: spec.strategy is missing: it must have canary or blueGreen\n" +
		"error: a.yaml:14: it is no YAML: mapping values are not allowed in this context\n" +
		"error: b.yaml:7: apiVersion is missing\n" +
		"error: b.yaml:8: items[2] is not an object\n" +
		"error: c.yaml:13: it is no YAML: key \"kind\" already set in map\n" +
		"review: ConfigMap settings: b.yaml:4: is left out: no Pods of the input use it: apply it to the application clusters yourself if " +
		"others do\n"
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
	if got := shipyardsIn(out); got != "a b c d e" || cli.ExitCode(err) != 1 {
		t.Errorf("%s, exit code %d: %v", got, cli.ExitCode(err), err)
	}
	if !strings.HasPrefix(out, "# error: a.yaml:8: spec.strategy is missing") {
		t.Errorf("the output does not begin with the errors:\n%s", out)
	}
}

// TestAnObjectAloneHasTheMessageThatItHasAmongOthers converts objects that fail, or are left out, alone and after others.
func TestAnObjectAloneHasTheMessageThatItHasAmongOthers(t *testing.T) {
	for sentence, text := range map[string]string{
		"a Rollout without a strategy":  "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {}\n",
		"a text that is no YAML":        "a: b: c\n",
		"a remediation file":            "remediations: [{name: a}]\n",
		"a placement of nothing":        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: a}\n",
		"a kind of KubeFleet":           "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourceOverride\nmetadata: {name: a}\n",
		"a kind of Argo":                "apiVersion: argoproj.io/v1alpha1\nkind: Experiment\nmetadata: {name: a}\n",
		"a kind of another project":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"an object without a kind":      "apiVersion: v1\n",
		"a template without metrics":    "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: a}\n",
		"a metric with a wrong name":    "apiVersion: flagger.app/v1beta1\nkind: MetricTemplate\nmetadata: {name: A_b}\n",
		"a shipyard without any stages": "stages: []\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			folderOf(t, map[string]string{"a.yaml": yard("a"), "b.yaml": text})
			_, alone, err := run(t, nil, "-f", "b.yaml")
			if code := cli.ExitCode(err); code != 1 && code != 3 {
				t.Errorf("alone the exit code is %d: %v", code, err)
			}
			_, among, err := run(t, nil, "-f", "a.yaml", "-f", "b.yaml")
			if code := cli.ExitCode(err); code != 1 && code != 3 {
				t.Errorf("among others the exit code is %d: %v", code, err)
			}
			// Of an input with nothing to convert there is one error more.
			if !strings.HasSuffix(alone, among) || among == "" || strings.Count(alone, "\n") > 2 {
				t.Errorf("alone:\n%s\namong others:\n%s", alone, among)
			}
		})
	}
}

// TestATemplateThatIsNotConvertedIsNoMissingTemplate converts a Rollout whose template has an error.
func TestATemplateThatIsNotConvertedIsNoMissingTemplate(t *testing.T) {
	in := string(withStrategy(`{canary: {steps: [{analysis: {templates: [{templateName: errors}]}}]}}`, "")) +
		"\n---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: errors}\n"
	out, err := convert(t.Context(), []byte(in), settings{regions: []string{"eu"}})
	if err == nil || len(out.all) != 1 {
		t.Fatalf("%d Applications, %v", len(out.all), err)
	}
	got := strings.Join(out.reviews(), "\n")
	const want = "AnalysisTemplate errors could not be converted: correct it"
	if !strings.Contains(got, want) || strings.Contains(got, "not in the input") {
		t.Errorf("reviews are\n%s", got)
	}
}

func TestNamesOfTheInputEndNoComment(t *testing.T) {
	rollout := func(name string) string {
		return "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: " + name + "}, spec: {selector: {matchLabels: {app: web}}, " +
			"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}, " +
			"strategy: {canary: {steps: [{setWeight: 50}]}}}}\n---\n"
	}
	out, err := convert(t.Context(), []byte(rollout("web")+rollout("other")+
		`{apiVersion: v1, kind: Service, metadata: {name: "web\nkind: Pod"}, spec: {selector: {app: web}, ports: [{port: 80}]}}`+"\n---\n"+
		`{apiVersion: v1, kind: "Pod\e[2J", metadata: {name: "a\nkind: Pod"}}`), settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := out.print()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "\nkind: Pod") || strings.Contains(text, "\x1b") {
		t.Errorf("the input writes lines or escapes of its own:\n%s", text)
	}
	if want := "# review: Rollout other: Service web kind: Pod is in the chart of Rollout web, too"; !strings.Contains(text, want) {
		t.Errorf("the output lacks %q:\n%s", want, text)
	}
}

func TestALinkToAFolderIsThatFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a/x.yaml", "a/b/y.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	for recursive, want := range map[bool][]string{
		false: {filepath.Join(link, "x.yaml")}, true: {filepath.Join(link, "b", "y.yaml"), filepath.Join(link, "x.yaml")},
	} {
		got, err := pathsOf(link, recursive)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("recursive %t: %v; paths (-want +got):\n%s", recursive, err, diff)
		}
	}
}
