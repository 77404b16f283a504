// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// listReleases lists what cleanDecommissionedClusters left.
func listReleases(t *testing.T) {
	var list shipper.ReleaseList
	if err := management(t).List(t.Context(), &list, client.InNamespace("only-there")); err != nil || len(list.Items) != 1 {
		t.Fatal(err, list.Items)
	}
	only := list.Items[0].Name
	for _, kind := range []string{"contender", "release"} {
		var got []map[string]any
		if err := json.Unmarshal([]byte(works(t, "list", kind, "--clusters", "eu-west-1", "-o", "json")), &got); err != nil {
			t.Fatal(err)
		}
		want := []map[string]any{{
			"namespace": "only-there", "name": only, "application": "web", "role": "contender", "clusters": []any{"eu-west-1"},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("list %s (-want +got)\n%s", kind, diff)
		}
	}
	holds(t, works(t, "list", "releases"), "only-there   web-", "shop-1       web-")
	if out := works(t, "list", "contender", "-n", "shop-1", "-o", "yaml"); strings.Count(out, "namespace:") != 1 {
		t.Errorf("one namespace:\n%s", out)
	}
	if out := works(t, "list", "release", "-n", "default"); out != "there are none\n" {
		t.Error(out)
	}
	if out := works(t, "list", "release", "--clusters", "us-9"); out != "none is placed on us-9 only\n" {
		t.Error(out)
	}
	refuses(t, "", "exclude each other", "list", "release", "-A", "-n", "default")
	refuses(t, "nobody", `User "nobody" cannot list resource "releases"`, "list", "release")
}

// renderCharts renders for two clusters one of which knows a kind more.
func renderCharts(t *testing.T) {
	repository := charts.Serve(t)
	nginx, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	repository.Publish(nginx)
	repository.Publish(curious(t))
	flags := []string{"--chart-repositories", charts.URLs}
	manifest := func(chart string) string {
		path := filepath.Join(t.TempDir(), "app.yaml")
		text := "apiVersion: shipper.booking.com/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: rendered}\nspec:\n  template:\n" +
			"    chart: {name: " + chart + ", version: 0.0.1, repoUrl: " + repository.URL + "}\n" +
			"    clusterRequirements: {regions: [{name: eu-west}]}\n" +
			"    strategy: {steps: [{name: full on, capacity: {contender: 100, incumbent: 0}, traffic: {contender: 100, incumbent: 0}}]}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	creates(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rendered"}})
	for _, flag := range []string{"-f", "--appFile", "--filename"} {
		out := works(t, append([]string{"chart", "render", "app", flag, manifest("nginx")}, flags...)...)
		holds(t, out, "# Release rendered/web-", " in eu-west-1\n---\napiVersion: v1\nkind: Service\n",
			"  namespace: rendered\n", "  replicas: 0\n",
			"    shipper-app: web\n", "    shipper-traffic-status: enabled\n", shipper.InstalledDigestAnnotation)
	}
	repository.Publish(hooked(t))
	rendered := append([]string{"chart", "render", "app", "-f", manifest("hooked")}, flags...)
	out := works(t, rendered...)
	var kinds []string
	for _, document := range strings.Split(out, "---\n")[1:] {
		var object struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, object.Kind+" "+object.Metadata.Name+" in "+object.Metadata.Namespace)
	}
	installed := []string{"Service hooked in rendered", "Deployment", "Job first in rendered", "Job second in rendered"}
	if len(kinds) > 1 && strings.HasPrefix(kinds[1], "Deployment web-") {
		kinds[1] = "Deployment"
	}
	if diff := cmp.Diff(installed, kinds); diff != "" {
		t.Errorf("objects, and behind them the hooks as they are run (-want +got)\n%s", diff)
	}
	out = works(t, append(rendered, "--no-hooks")...)
	if strings.Contains(out, "helm.sh/hook") || !strings.Contains(out, "kind: Deployment") {
		t.Errorf("without hooks:\n%s", out)
	}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "rendered", Name: "web"}}
	app.Spec.Template = shipper.ReleaseEnvironment{
		Chart:               shipper.Chart{Name: "curious", Version: "0.0.1", RepoURL: repository.URL},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "eu-west"}, {Name: "us-east"}}},
	}
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
		Name: "full on", Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
	}}}
	creates(t, app)
	rel, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	alike := works(t, append([]string{"chart", "render", "app", "--appName", "web", "-n", "rendered"}, flags...)...)
	holds(t, alike, "# Release rendered/"+rel.Name+" in eu-west-1, us\n")
	if strings.Count(alike, "# Release") != 1 || strings.Contains(alike, "known") {
		t.Errorf("clusters that are alike:\n%s", alike)
	}
	widgets(t)
	rel.Annotations[shipper.ReleaseClustersAnnotation] = "eu-west-1,us"
	creates(t, rel)
	release := append([]string{"chart", "render", "release", rel.Name, "-n", "rendered"}, flags...)
	var got []struct {
		Namespace, Application, Release string
		Clusters                        []string
		Objects                         []struct {
			Metadata struct{ Annotations map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(works(t, append(release, "-o", "json")...)), &got); err != nil {
		t.Fatal(err)
	}
	knows := map[string]string{}
	for _, one := range got {
		for _, cluster := range one.Clusters {
			knows[cluster] = one.Namespace + "/" + one.Release + " of " + one.Application + " " + one.Objects[0].Metadata.Annotations["widgets"]
		}
	}
	name := "rendered/" + rel.Name + " of web "
	if diff := cmp.Diff(map[string]string{"eu-west-1": name, "us": name + "known"}, knows); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if out := works(t, append(release, "--clusters", "us")...); strings.Count(out, "# Release") != 1 || !strings.Contains(out, "in us\n") {
		t.Errorf("one cluster:\n%s", out)
	}
	allow(t, "developer", "", every(shipper.GroupName, []string{"get", "list"}, "applications", "releases", "clusters"))
	out, err = shipperctl(t, "developer", "", release...)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, out, "Note: cluster us cannot be asked for its APIs (reading the Secret shipper-system/us: ",
		"# Release rendered/"+rel.Name+" in eu-west-1, us\n", "  namespace: rendered\n")
	refuses(t, "", "name an application, or a file with --file, and not both", "chart", "render", "app")
	refuses(t, "", "charts may be fetched only from", "chart", "render", "release", rel.Name, "-n", "rendered")
}

// curious is a chart that asks what the cluster knows.
func curious(t *testing.T) charts.Archive {
	t.Helper()
	archive, err := charts.PackFiles("curious", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: curious\nversion: 0.0.1\n",
		"templates/all.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: curious\n  annotations:\n" +
			"    widgets: {{ if .Capabilities.APIVersions.Has \"example.com/v1/Widget\" }}known{{ else }}\"\"{{ end }}\n" +
			"spec: {selector: {app: curious}, ports: [{port: 80}]}\n---\n" +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  replicas: 3\n" +
			"  selector: {matchLabels: {app: curious}}\n  template:\n    metadata: {labels: {app: curious}}\n" +
			"    spec: {containers: [{name: app, image: nginx}]}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// hooked is a chart with hooks that run in another order than they are written.
func hooked(t *testing.T) charts.Archive {
	t.Helper()
	job := func(name, hook, weight string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: " + name + "\n  annotations: {helm.sh/hook: " + hook +
			", helm.sh/hook-weight: \"" + weight + "\"}\n"
	}
	archive, err := charts.PackFiles("hooked", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: hooked\nversion: 0.0.1\n",
		"templates/all.yaml": job("second", "test", "5") + job("first", "pre-install", "-5") +
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n" +
			"  selector: {matchLabels: {app: hooked}}\n  template:\n    metadata: {labels: {app: hooked}}\n" +
			"    spec: {containers: [{name: app, image: nginx}]}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: hooked}\nspec: {selector: {app: hooked}, ports: [{port: 80}]}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// widgets makes a kind known to the cluster us.
func widgets(t *testing.T) {
	t.Helper()
	c, yes := application(t, east), true
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
			},
		}},
	}
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if err := c.Get(t.Context(), client.ObjectKey{Name: crd.Name}, crd); err != nil {
			return err.Error()
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return ""
			}
		}
		return "it is not served"
	})
}
