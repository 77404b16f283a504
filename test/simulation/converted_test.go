// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	conversion "shipper.dev/shipper/cmd/shipperctl/convert"
)

// shapesFolder has manifests of other projects, a folder for each project. To add one, write a file: its first line is a comment that says
// what it is; a line `# measured: 0.5` is what all its checks measure, 1 by default, and `# name: shop` is the flag --name. Checks reach
// http://checks alone. Then write the results with UPDATE_GOLDEN=1, and read the difference.
const (
	shapesFolder  = "../../cmd/shipperctl/convert/testdata/shapes"
	shapesResults = shapesFolder + "/results.txt"
)

// resultsHead begins the file of results.
const resultsHead = `What becomes of manifests of other projects. TestConvertedShapes of test/simulation writes this file.

  exit    exit code of shipperctl convert -n shop --region region-0, with --name where the file begins so
  named   what convert says: an error, or a review of what behaves differently
  admits  what the webhook and the schemas answer when the objects are created, by a user with all rights
  end     the first Release, and then one more through all steps, in virtual time, on one cluster, and for KubeFleet on
          three; a person passes each gate, and another one gives each approval. Of a shipyard: each sequence that no
          other triggers, with the service web

`

// TestConvertedShapes converts each manifest, has the webhook judge what becomes of it, and runs it to its end.
func TestConvertedShapes(t *testing.T) {
	prepare()
	files, err := filepath.Glob(shapesFolder + "/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d shapes, %v", len(files), err)
	}
	before, err := os.ReadFile(shapesResults)
	if err != nil && os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatal(err)
	}
	wanted := sections(string(before))
	results := make([]string, len(files))
	t.Run("shape", func(t *testing.T) {
		for i, file := range files {
			title := titleOf(file)
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				results[i] = resultOf(t, title, file)
				if diff := gocmp.Diff(wanted[title], results[i]); diff != "" && os.Getenv("UPDATE_GOLDEN") == "" {
					t.Errorf("UPDATE_GOLDEN=1 writes %s (-want +got):\n%s", shapesResults, diff)
				}
			})
		}
	})
	if os.Getenv("UPDATE_GOLDEN") != "" {
		for i, file := range files { // only some were run
			results[i] = cmp.Or(results[i], wanted[titleOf(file)])
		}
	}
	switch {
	case slices.Contains(results, ""):
	case os.Getenv("UPDATE_GOLDEN") != "":
		if err := os.WriteFile(shapesResults, []byte(resultsHead+strings.Join(results, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	case len(wanted) != len(results) || !strings.HasPrefix(string(before), resultsHead):
		t.Errorf("%s has the results of %d shapes, and there are %d: UPDATE_GOLDEN=1 writes it", shapesResults, len(wanted), len(results))
	}
}

// titleOf is the project and the name of a shape.
func titleOf(file string) string {
	return strings.TrimSuffix(strings.TrimPrefix(file, filepath.Clean(shapesFolder)+"/"), ".yaml")
}

// sections are the results of shapes by their titles.
func sections(text string) map[string]string {
	out := map[string]string{}
	for i, section := range strings.Split("\n"+text, "\n=== ") {
		if i > 0 {
			title, _, _ := strings.Cut(section, ":")
			out[title] = "=== " + strings.TrimSuffix(section, "\n") + "\n"
		}
	}
	return out
}

// shape is one manifest, and what becomes of it.
type shape struct {
	*Fixture
	// approver is the client of another user.
	approver client.Client
	// given are its objects of Kubernetes, which are there before, and made what convert makes of the others.
	given, made []*unstructured.Unstructured
	measured    string
	// clusters is how many application clusters there are.
	clusters int
	// name is that of a shipyard whose file has none.
	name  string
	lines []string
}

func (s *shape) say(what, format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf("%-7s ", what)+strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// resultOf is the section of a shape.
func resultOf(t *testing.T, title, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &shape{measured: "1", clusters: 1}
	if strings.HasPrefix(title, "kubefleet/") {
		s.clusters = 3
	}
	what := ""
	for line := range strings.Lines(string(raw)) {
		comment, is := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !is {
			break
		}
		if value, is := strings.CutPrefix(comment, "measured: "); is {
			s.measured = value
		} else if value, is := strings.CutPrefix(comment, "name: "); is {
			s.name = value
		} else if what == "" {
			what = comment
		}
	}
	if what == "" {
		t.Fatalf("%s: the first line has to be a comment that says what the shape is", file)
	}
	s.lines = []string{fmt.Sprintf("=== %s: %s", title, what)}
	s.convert(t, file)
	for _, o := range documentsOf(t, string(raw)) {
		if group := o.GroupVersionKind().Group; !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
			if o.GetKind() != "" && o.GetAPIVersion() != "" && !strings.HasPrefix(o.GetKind(), "Shipyard") {
				s.given = append(s.given, o)
			}
		}
	}
	if len(s.made) > 0 {
		synctest.Test(t, s.runs)
	}
	return strings.Join(s.lines, "\n") + "\n"
}

// convert runs the command.
func (s *shape) convert(t *testing.T, file string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := conversion.NewCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"-f", file, "-n", namespace, "--region", region(0), "--name", s.name})
	s.say("exit", "%d", cli.ExitCode(cmd.ExecuteContext(t.Context())))
	for line := range strings.Lines(strings.ReplaceAll(errs.String(), file, filepath.Base(file))) {
		s.say("named", "%s", strings.TrimPrefix(line, "review: "))
	}
	order := []string{"Cluster", "Check", "Envelope", "Shipyard", "Application"}
	s.made = documentsOf(t, out.String())
	slices.SortStableFunc(s.made, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(order, a.GetKind()), slices.Index(order, b.GetKind()))
	})
	for _, o := range s.made {
		if o.GetNamespace() == "" && o.GetKind() != "Cluster" {
			o.SetNamespace(namespace)
		}
	}
}

// documentsOf are the objects in YAML documents. Those that are no YAML are left out.
func documentsOf(t *testing.T, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		raw, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			continue
		}
		one := &unstructured.Unstructured{}
		if one.UnmarshalJSON(raw) != nil {
			continue
		}
		out = append(out, one)
	}
	return out
}
