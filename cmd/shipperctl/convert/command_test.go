// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// run runs the command with an input and returns its outputs.
func run(t *testing.T, in []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetIn(bytes.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestExitCodes(t *testing.T) {
	whole := withStrategy(`{canary: {}}`, "")
	lossy := withStrategy(`{canary: {maxSurge: 1}}`, "")
	fleet := func(kind, spec string) []byte {
		return []byte("{apiVersion: placement.kubernetes-fleet.io/v1, kind: " + kind + ", metadata: {name: work}, spec: " + spec + "}")
	}
	selecting := `{resourceSelectors: [{group: "", version: v1, kind: Namespace, name: work}]}`
	for sentence, c := range map[string]struct {
		in   []byte
		args []string
		want int
	}{
		"nothing of a placement is lost":            {fleet(clusterPlacement, selecting), []string{"-f", "-"}, 0},
		"a kind has no counterpart yet":             {fleet("ClusterResourceOverride", "{}"), []string{"-f", "-"}, 3},
		"a person accepts that it has none":         {fleet("ClusterResourceOverride", "{}"), []string{"-f", "-", "--accept"}, 0},
		"a placement selects nothing":               {fleet(clusterPlacement, "{}"), []string{"-f", "-"}, 1},
		"a namespace that cannot be":                {fleet(clusterPlacement, selecting), []string{"-f", "-", "-n", "a/b"}, 2},
		"nothing is lost":                           {whole, []string{"-f", "-", "--region", "eu"}, 0},
		"a person has to name the regions":          {whole, []string{"-f", "-"}, 3},
		"a person has to review a field":            {lossy, []string{"-f", "-", "--region", "eu"}, 3},
		"a person has reviewed it":                  {lossy, []string{"-f", "-", "--accept"}, 0},
		"the input is no YAML":                      {[]byte("a: b: c"), []string{"-f", "-"}, 1},
		"the file is not there":                     {nil, []string{"-f", "nowhere.yaml"}, 1},
		"there is no file":                          {nil, nil, 2},
		"a region without a name":                   {whole, []string{"-f", "-", "--region", ""}, 2},
		"a repository for a chart that is archived": {whole, []string{"-f", "-", "--repo-url", "https://charts"}, 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, _, err := run(t, c.in, c.args...)
			if got := cli.ExitCode(err); got != c.want {
				t.Errorf("exit code %d, want %d: %v", got, c.want, err)
			}
		})
	}
}

func TestReviewsAreCommentsAndOnStandardError(t *testing.T) {
	stdout, stderr, err := run(t, withStrategy(`{canary: {maxSurge: 1}}`, `"a\n- b": 1`), "-f", "-")
	if cli.ExitCode(err) != cli.ToReview {
		t.Error(err)
	}
	want := []string{
		"review: Rollout web: spec.a - b: " + adviceFor(""),
		"review: Rollout web: spec.strategy.canary.maxSurge: is 1: Argo runs at most 11 Pods, and Shipper up to 20 on the way to the step " +
			"\"full on\": add steps with less capacity before it",
		"review: Rollout web: spec: names no regions: replace REGION in the Application by a region of your clusters, or give --region",
	}
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", stderr); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
	comments := "# " + strings.Join(want, "\n# ") + "\napiVersion: shipper.booking.com/v1alpha1\n"
	if !strings.HasPrefix(stdout, comments) {
		t.Errorf("the output begins with\n%s\nwant\n%s", stdout, comments)
	}
}

func TestOneServiceOfTwoRolloutsIsReported(t *testing.T) {
	one := withStrategy(`{canary: {stableService: web}}`, "")
	second := bytes.Replace(one, []byte("{name: web}"), []byte("{name: api}"), 1)
	two := bytes.Join([][]byte{one, second}, []byte("---"))
	out, err := convert(t.Context(), two, settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	const shared = ": spec.strategy.canary.stableService: selects no Pods of the canary with Argo Rollouts before the last step; here web " +
		"selects the Pods of both Releases, in the shares of each step"
	want := []string{
		"Service web: document 4: is left out: put it into the chart's templates if it belongs to a Release, or apply it to the application " +
			"clusters yourself",
		"Rollout web" + shared, "Rollout api" + shared,
		"Rollout api: Service web is in the chart of Rollout web, too: give each its own, since an object belongs to one Application",
	}
	if diff := cmp.Diff(want, out.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

func TestChartsAreWrittenOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "charts")
	two := append(withStrategy(`{canary: {}}`, ""),
		bytes.ReplaceAll(append([]byte("---"), withStrategy(`{canary: {}}`, "")...), []byte("name: web}"), []byte("name: api}"))...)
	args := []string{"-f", "-", "--region", "eu", "--chart-dir", dir, "--repo-url", "https://charts.example.com"}
	stdout, _, err := run(t, two, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(stdout, "repoUrl: https://charts.example.com\n"); n != 2 || strings.Contains(stdout, "archive") {
		t.Errorf("%d repositories in\n%s", n, stdout)
	}
	var got []string
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(dir, path)
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"api", "web"} {
		for _, path := range []string{"Chart.yaml", "templates/deployment.yaml", "templates/service.yaml", "values.yaml"} {
			want = append(want, name+"/"+path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, _, err := run(t, two, args...); err == nil || !strings.Contains(err.Error(), "web is there already: delete it") {
		t.Errorf("the second time: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	pods := "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: b}]}}"
	rollout := func(spec string) string {
		return "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {" + spec + "}}"
	}
	canary := func(fields string) string { return rollout(pods + ", strategy: {canary: {" + fields + "}}") }
	const wanted = "give Rollouts, AnalysisTemplates or ClusterAnalysisTemplates of argoproj.io/v1alpha1, Canaries and MetricTemplates of " +
		"flagger.app/v1beta1, MemberClusters, placements or envelopes of kubernetes-fleet.io, or a shipyard of Keptn"
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n"
	for sentence, c := range map[string]struct{ in, want string }{
		"nothing":                {"# nothing\n---\n", "the input is empty: " + wanted},
		"no Rollout":             {configMap, "there is nothing to convert in the input, only: ConfigMap: " + wanted},
		"a text":                 {configMap + "web", "document 2: it is not an object with apiVersion and kind"},
		"an object without kind": {configMap + "{apiVersion: v1}", "document 2: kind is missing"},
		"a key twice":            {"{kind: a, kind: b}", `document 1: yaml: unmarshal errors: line 1: key "kind" already set in map`},
		"no name":                {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout}", "document 1: metadata.name is missing"},
		"no strategy":            {configMap + rollout(pods), "document 2: spec.strategy is missing: it must have canary or blueGreen"},
		"two strategies": {rollout(pods + ", strategy: {canary: {}, blueGreen: {}}"),
			"document 1: spec.strategy has both canary and blueGreen: leave one of the two out"},
		"no template": {rollout("strategy: {canary: {}}"), "document 1: spec.template is missing"},
		"no template and its Deployment is elsewhere": {
			rollout("workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, strategy: {canary: {}}"),
			"document 1: spec.template is missing, and Deployment web, which spec.workloadRef names, is not in the input",
		},
		"no selector": {rollout("template: {spec: {}}, strategy: {canary: {}}"), "document 1: spec.selector is missing"},
		"replicas that are no number": {rollout(pods + ", replicas: many, strategy: {canary: {}}"),
			"document 1: spec.replicas is a string, and must be a number"},
		"no active Service": {rollout(pods + ", strategy: {blueGreen: {}}"),
			"document 1: spec.strategy.blueGreen.activeService is missing"},
		"one Service for two": {rollout(pods + ", strategy: {blueGreen: {activeService: a, previewService: a}}"),
			"document 1: spec.strategy.blueGreen.previewService is the same Service as spec.strategy.blueGreen.activeService"},
		"a weight that is too much": {canary("steps: [{setWeight: 101}]"),
			"document 1: spec.strategy.canary.steps[0].setWeight must be from 0 to 100"},
		"a step of two": {canary("steps: [{pause: {}}, {setWeight: 1, pause: {}}]"), "document 1: spec.strategy.canary.steps[1] has pause and " +
			"setWeight, of which Argo accepts one: make a step of each"},
		"an empty step": {canary("steps: [{}]"), "document 1: spec.strategy.canary.steps[0] is empty: write what it does, such as setWeight, " +
			"or delete it"},
		"a surge that is no number": {canary("maxSurge: many"), `document 1: spec.strategy.canary.maxSurge is "many", and must be a number of ` +
			`Pods or a percentage such as 25%`},
		"a pause that is no time": {canary("steps: [{pause: {duration: soon}}]"), `document 1: spec.strategy.canary.steps[0].pause.duration ` +
			`is "soon", and must be a number of seconds or a duration such as 10m or 1h`},
		"more steps than an Application has": {canary("steps: [" + strings.Repeat("{pause: {}}, ", 100) + "]"),
			"document 1: spec.strategy.canary.steps become 101 steps, and an Application has 100 at most"},
		"a Service that selects other Pods": {
			canary("stableService: web") + "\n---\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: other}}}",
			`document 2: spec.selector asks for "app=other", but the Pods of Rollout web have no such label`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := convert(t.Context(), []byte(c.in), settings{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestTextsAreOneSentence(t *testing.T) {
	for _, text := range slices.Concat(slices.Collect(maps.Values(unconverted)), slices.Collect(maps.Values(unconvertedAnalysis)),
		slices.Collect(maps.Values(unconvertedProvider)), slices.Collect(maps.Values(vendors)), slices.Collect(maps.Values(leftOut)),
		slices.Collect(maps.Values(leftOutOfFleet)), slices.Collect(maps.Values(unconvertedMember)),
		[]string{vendor, listAddress, listURL}) {
		if strings.ContainsAny(text, "\n") || strings.Contains(text, ". ") || strings.HasSuffix(text, ".") {
			t.Errorf("%q is not one sentence", text)
		}
	}
}
