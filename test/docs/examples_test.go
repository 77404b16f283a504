// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/clusters"
)

// examples is the folder of manifests for users.
var examples = filepath.Join(root, "examples")

// exampleFiles returns the folders of examples, and the text of the manifests in each by file name.
func exampleFiles(t *testing.T) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	err := filepath.WalkDir(examples, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "gitops" { // for programs that are not here; test/gitops reads it
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".yaml" || filepath.Base(path) == "clusters.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		folder := filepath.Base(filepath.Dir(path))
		if out[folder] == nil {
			out[folder] = map[string]string{}
		}
		out[folder][filepath.Base(path)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// expected matches the warnings of the webhook for an example on a fleet without servers of metrics, and that kubectl has not created a
// namespace of theirs. Any other warning is one of the API server: of a field that is unknown, or of a version that will go.
var expected = regexp.MustCompile(`^Warning: (plan: |this makes Release |chart .* was resolved to |` +
	`this stops rollouts in every namespace|this block is not in effect now|might not roll out: |` +
	`select\[\d+\]: |ServiceAccount shipper-runner is not bound to Shipper|resource namespaces/|(check \S+: )?there is no Prometheus server )`)

// TestExamplesApply applies every manifest of the examples by a dry run, through the webhook.
func TestExamplesApply(t *testing.T) {
	quickStart(t)
	t.Parallel()
	seen := 0
	for folder, files := range exampleFiles(t) {
		p := page{name: "examples/" + folder + "/README.md"}
		for _, text := range files { // an Application names the Checks of its folder
			p.blocks = append(p.blocks, block{language: "yaml", text: text})
		}
		for name, text := range files {
			for i, document := range strings.Split(text, "\n---\n") {
				seen++
				t.Run(fmt.Sprintf("%s/%s.%d", folder, name, i), func(t *testing.T) {
					t.Parallel()
					var head struct {
						Metadata metav1.ObjectMeta `json:"metadata"`
					}
					if err := yaml.Unmarshal([]byte(document), &head); err != nil {
						t.Fatal(err)
					}
					for line := range strings.Lines(applies(t, p, document, head.Metadata)) {
						if strings.HasPrefix(line, "Warning: ") && !expected.MatchString(line) {
							t.Error(line)
						}
					}
				})
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d examples were found", seen)
	}
}

func TestExampleOfClustersIsRead(t *testing.T) {
	path := filepath.Join(examples, "clusters.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := clusters.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Applications) != 2 || len(file.Management) != 1 {
		t.Errorf("it says %+v", file)
	}
}

func TestQuickStartMakesTheReleaseOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(examples, "01-quick-start", "app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	app := &shipper.Application{}
	if err := yaml.UnmarshalStrict(text, app); err != nil {
		t.Fatal(err)
	}
	hash, err := stamp.Hash(app.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples/01-quick-start/README.md", "docs/quick-start.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := "super-server-" + hash + "-0"; !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s does not speak of %s", name, want)
		}
	}
}
