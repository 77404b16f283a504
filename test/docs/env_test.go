// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	testenv "shipper.dev/shipper/test/env"
)

// The clusters of the quick start, and their regions.
const west, east = "eu-west-1", "us-east-1"

// env is where commands run: a shell in an empty folder, and a namespace in every cluster, which is the default of all
// contexts.
type env struct {
	*testing.T
	ctx       context.Context
	shell     *shell
	namespace string
	folder    string
	*follower
	// names are pairs of a name in the document and the name here.
	names []string
	// releases has the newest Release by Application.
	releases map[string]string
	// first has what runs before the first command that contains the key.
	first map[string]func()
}

// aliases maps contexts that documents name to the clusters used here.
var aliases = map[string]string{"eu-west-2": east, "kind-app": east}

// newEnv returns the env of a page; its shell is in the folder.
func newEnv(t *testing.T, p page) *env {
	t.Helper()
	s := &env{T: t, ctx: t.Context(), follower: follows(t), releases: map[string]string{}, first: map[string]func(){}}
	var err error
	s.folder, err = os.MkdirTemp(world.dir, "stage-") // kubectl splits paths at commas, which paths named after tests have
	s.must(err)
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "docs-"}}
	s.must(world.management.Create(s.ctx, made))
	s.namespace = made.Name
	for _, c := range world.applications {
		s.must(c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	}
	config, err := clientcmd.LoadFromFile(world.fleet.Kubeconfig)
	s.must(err)
	for alias, name := range aliases {
		config.Contexts[alias] = config.Contexts[name].DeepCopy()
	}
	for _, c := range config.Contexts {
		c.Namespace = s.namespace
	}
	kubeconfig := filepath.Join(s.folder, "kubeconfig")
	s.must(clientcmd.WriteToFile(*config, kubeconfig))
	here := s.folder
	switch {
	case strings.HasPrefix(p.name, "examples/"):
		here = filepath.Join(root, filepath.Dir(p.name))
	case p.name == "docs/quick-start.md":
		here = root
	}
	here, err = filepath.Abs(here)
	s.must(err)
	s.shell, err = openShell(context.Background(), here, append(world.environment, "KUBECONFIG="+kubeconfig)...)
	s.must(err)
	t.Cleanup(s.shell.end)
	t.Cleanup(s.clear)
	return s
}

func (s *env) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// types runs a command that must succeed in the shell.
func (s *env) types(command string) {
	s.Helper()
	typed(s.T, s.shell, command)
}

func typed(t *testing.T, where *shell, command string) {
	t.Helper()
	said, status, err := where.run(command, patience)
	if err != nil || status != 0 {
		t.Fatalf("$ %s\n%s\nended with %d, %v", command, said, status, err)
	}
}

// before runs what must happen before a command, once.
func (s *env) before(command string) {
	for part, do := range s.first {
		if strings.Contains(command, part) {
			do()
			delete(s.first, part)
		}
	}
}

// file writes a file into the folder.
func (s *env) file(name, text string) {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600))
}

var release = regexp.MustCompile(`\b([a-z-]+)-[0-9a-f]{8}-\d+\b`)

// real returns a document's text with the names used here.
func (s *env) real(text string) string {
	text = release.ReplaceAllStringFunc(text, func(documented string) string {
		if name := s.releases[release.FindStringSubmatch(documented)[1]]; name != "" {
			return name
		}
		return documented
	})
	return strings.NewReplacer(s.names...).Replace(text)
}

// eventually polls until look returns nil.
func (s *env) eventually(what string, look func() error) {
	s.Helper()
	testenv.Within(s, patience, what, func(context.Context) error { return look() })
}

// application returns an Application with its steps, for clusters of these regions.
func (s *env) application(name, version string, replicas int, regions ...string) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas)}
	app := &shipper.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: shipper.ApplicationSpec{Template: shipper.ReleaseEnvironment{
			Chart: shipper.Chart{Name: "nginx", Version: version, RepoURL: charts.Public}, Values: &values,
			Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
				step("staging", 1, 100, 0, 100), step("canary 50/50", 50, 50, 50, 50), step("full on", 100, 0, 100, 0),
			}},
		}},
	}
	wanted := &app.Spec.Template.ClusterRequirements
	for _, region := range regions {
		wanted.Regions = append(wanted.Regions, shipper.RegionRequirement{Name: region})
	}
	return app
}

func step(name string, contender, incumbent, weight, others int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Contender: contender, Incumbent: incumbent},
		Traffic:  shipper.RolloutStrategyStepValue{Contender: weight, Incumbent: others},
	}
}

// manifest returns an Application as YAML.
func (s *env) manifest(app *shipper.Application) string {
	s.Helper()
	text, err := yaml.Marshal(app)
	s.must(err)
	return string(text)
}

// applied applies an Application and returns the name of the resulting Release.
func (s *env) applied(app *shipper.Application) string {
	s.Helper()
	s.file("given.yaml", s.manifest(app))
	s.types("kubectl apply -f " + quoted(filepath.Join(s.folder, "given.yaml")))
	live := &shipper.Application{}
	s.must(world.management.Get(s.ctx, client.ObjectKeyFromObject(app), live))
	s.eventually("the Release of "+app.Name, func() error {
		var all shipper.ReleaseList
		own := client.MatchingLabels{shipper.AppLabel: app.Name}
		if err := world.management.List(s.ctx, &all, client.InNamespace(s.namespace), own); err != nil {
			return err
		}
		for _, rel := range all.Items {
			if stamp.SameEnvironment(&rel.Spec.Environment, &live.Spec.Template) {
				s.releases[app.Name] = rel.Name
				return nil
			}
		}
		return fmt.Errorf("%d Releases, none of them of this template", len(all.Items))
	})
	return s.releases[app.Name]
}

// moved requests a step of a Release and waits for it.
func (s *env) moved(name string, to int32) {
	s.Helper()
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, to))
	s.must(world.management.Patch(s.ctx, rel, patch))
	s.achieved(name, to)
}

// achieved waits until a Release has achieved a step.
func (s *env) achieved(name string, step int32) {
	s.Helper()
	s.eventually(fmt.Sprintf("step %d of %s", step, name), func() error {
		rel := &shipper.Release{}
		if err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, rel); err != nil {
			return err
		}
		if a := rel.Status.AchievedStep; a == nil || a.Step != step {
			return fmt.Errorf("it has achieved %+v: %+v", a, rel.Status.Conditions)
		}
		return nil
	})
}

// blocked creates a RolloutBlock, and returns when the webhook enforces it and its status says whether it is in effect.
func (s *env) blocked(namespace, name, author string, spec shipper.RolloutBlockSpec) {
	s.Helper()
	s.alone()
	spec.Author = shipper.RolloutBlockAuthor{Type: "user", Name: author}
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	s.must(world.management.Create(s.ctx, b))
	if spec.Schedule == nil {
		s.eventually("a refusal", func() error {
			if s.probe() == nil {
				return fmt.Errorf("the webhook does not enforce it yet")
			}
			return nil
		})
	}
	s.eventually("the status of "+name, func() error {
		if err := world.management.Get(s.ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if b.Status.Active == nil {
			return fmt.Errorf("it does not say whether it is in effect")
		}
		return nil
	})
}

// probe asks the webhook by a dry run whether a rollout may begin.
func (s *env) probe() error {
	probe := s.application("probe", "0.0.1", 1, "eu-west")
	return client.NewDryRunClient(world.management).Create(context.Background(), probe)
}

// clear deletes objects that affect all pages. Only a page that runs alone may create such objects.
func (s *env) clear() {
	ctx := context.Background()
	var all shipper.RolloutBlockList
	if err := world.management.List(ctx, &all); err != nil {
		s.Error(err)
	}
	if !s.single {
		for _, b := range all.Items {
			if b.Namespace == shipper.GlobalBlocksNamespace {
				s.Errorf("RolloutBlock %s affects other pages: mark the block that creates it as `alone`", b.Name)
			}
		}
		return
	}
	for _, b := range all.Items {
		if err := client.IgnoreNotFound(world.management.Delete(ctx, &b)); err != nil {
			s.Error(err)
		}
	}
	s.eventually("nothing is blocked", s.probe)
}
