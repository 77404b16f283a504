// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	versions "shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/render"
)

// TestValuesReachTheirContainer alone: an image, environment and resources that a person edits, adds or removes.
func TestValuesReachTheirContainer(t *testing.T) {
	_, out := converting(t, "containers")
	app := out.all[0].app
	values := app.Spec.Template.Values.DeepCopy()
	containers := values["containers"].(map[string]any)
	containers["proxy"] = map[string]any{"image": "proxy:2", "env": []any{map[string]any{"name": "A", "value": "b"}}}
	web := containers["web-1"].(map[string]any)
	web["resources"], web["env"] = nil, []any{}
	target := render.Target{Naming: shipper.NamingByApplication, ReleaseName: "shop-6f19aa85-0", Namespace: "shop", App: "shop"}
	manifest := manifestOf(t, app, &values, target)
	type container struct{ Name, Image, Env, Resources any }
	want := []container{
		{Name: "web-1", Image: web["image"], Env: []any{}},
		{Name: "proxy", Image: "proxy:2", Env: []any{map[string]any{"name": "A", "value": "b"}}},
	}
	var got []container
	for i := range manifest.Objects {
		found, _, _ := unstructured.NestedSlice(manifest.Objects[i].Object, "spec", "template", "spec", "containers")
		for _, one := range found {
			fields := one.(map[string]any)
			got = append(got, container{fields["name"], fields["image"], fields["env"], fields["resources"]})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

// TestContainersWithoutANameOfTheirOwnAreAsTheyWere and have no values.
func TestContainersWithoutANameOfTheirOwnAreAsTheyWere(t *testing.T) {
	in := bytes.Replace(withStrategy(`{canary: {}}`, ""), []byte("containers: [{name: web, image: nginx}]"),
		[]byte("containers: [{image: '{{ nameless }}'}, {name: web, image: nginx, stdin: true}]"), 1)
	out, err := convert(t.Context(), in, settings{})
	if err != nil {
		t.Fatal(err)
	}
	app := out.all[0].app
	want := shipper.ChartValues{"replicaCount": int64(10), "containers": map[string]any{"web": map[string]any{"image": "nginx"}}}
	if diff := cmp.Diff(&want, app.Spec.Template.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	target := render.Target{Naming: shipper.NamingByApplication, ReleaseName: "web-6f19aa85-0", Namespace: "shop", App: "web"}
	manifest := manifestOf(t, app, nil, target)
	for i := range manifest.Objects {
		if o := &manifest.Objects[i]; o.GetKind() == "Deployment" {
			got, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
			if diff := cmp.Diff(templateIn(t, in), got); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
		}
	}
}

func TestTheVersionOfAChartFollowsItsContent(t *testing.T) {
	found := map[string]bool{}
	for _, image := range []string{"nginx", "nginx", "nginx:1.29"} {
		in := bytes.Replace(withStrategy(`{canary: {}}`, ""), []byte("image: nginx"), []byte("image: "+image), 1)
		out, err := convert(t.Context(), in, settings{})
		if err != nil {
			t.Fatal(err)
		}
		version := out.all[0].app.Spec.Template.Chart.Version
		if !versions.IsExact(version) || !strings.Contains(out.all[0].chart["Chart.yaml"], "\nversion: "+version+"\n") {
			t.Errorf("%s is not the one version of\n%s", version, out.all[0].chart["Chart.yaml"])
		}
		if later, err := versions.Satisfies(">"+version, "0.0.1"); err != nil || !later {
			t.Errorf("a person cannot give the chart a later version than %s: %v", version, err)
		}
		found[version] = true
	}
	if len(found) != 2 {
		t.Errorf("two different charts have the versions %v", slices.Sorted(maps.Keys(found)))
	}
}

func TestAServiceOfAnotherRolloutIsNotTaken(t *testing.T) {
	one := withStrategy(`{canary: {}}`, "")
	other := bytes.ReplaceAll(one, []byte("name: web}"), []byte("name: api}"))
	out, err := convert(t.Context(), bytes.Join([][]byte{one, other}, []byte("---")), settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, one := range out.all {
		got = append(got, slices.Sorted(maps.Keys(one.chart)))
	}
	want := []string{"Chart.yaml", "templates/deployment.yaml", "templates/service.yaml", "values.yaml"}
	if diff := cmp.Diff([][]string{want, want}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestServicesThatARolloutDoesNotNameAreNotNamed in what a person has to review.
func TestServicesThatARolloutDoesNotNameAreNotNamed(t *testing.T) {
	const pods = "containers: [{name: web, image: nginx}]"
	const once = "its Pods cannot run beside those of the Release before, so that the Deployment changes in place at the step that gives " +
		"the contender 100 % of capacity, and steps before it change nothing"
	for sentence, c := range map[string]struct {
		pods string
		want []string
	}{
		"a worker needs no Service": {pods: pods},
		"Pods with ports may have one": {pods: "containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]", want: []string{
			"Rollout web: spec.strategy.canary: no Service in the input selects the Pods, so that capacity alone decides: put the Services, if " +
				"there are any, beside the Rollout, and convert it again",
		}},
		"what the Pods need is named": {
			pods: pods + ", serviceAccountName: web, imagePullSecrets: [{name: pull}], volumes: [" +
				"{name: b, projected: {sources: [{configMap: {name: more}}, {secret: {name: maybe, optional: true}}]}}]",
			want: []string{"Rollout web: spec.template: needs objects that the chart does not have: apply them to each application cluster: " +
				"ConfigMap more, Secret pull, ServiceAccount web"},
		},
		"a claim that is elsewhere may be for one node": {
			pods: pods + ", volumes: [{name: a, persistentVolumeClaim: {claimName: data}}]",
			want: []string{
				"Rollout web: spec.template: needs objects that the chart does not have: apply them to each application cluster: " +
					"PersistentVolumeClaim data",
				"Rollout web: spec.template: claim data is not in the chart, and may be mountable by one node: " + once,
			},
		},
		"the label of Argo's controller is named": {
			pods: "containers: [{name: web, image: nginx, env: [{name: HASH, valueFrom: {fieldRef: {fieldPath: " +
				"\"metadata.labels['rollouts-pod-template-hash']\"}}}]}]",
			want: []string{"Rollout web: spec.template: names the label rollouts-pod-template-hash, which Argo's controller sets, and which " +
				"Pods do not have here: write shipper-release, whose value is the name of the Release"},
		},
		"Pods that cannot run twice are named": {
			pods: "containers: [{name: web, image: nginx, ports: [{hostPort: 80}]}]",
			want: []string{"Rollout web: spec.template: host port 80: " + once},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, _, _ := bytes.Cut(withStrategy(`{canary: {}}`, ""), []byte("---"))
			out, err := convert(t.Context(), bytes.Replace(in, []byte(pods), []byte(c.pods), 1), settings{regions: []string{"eu"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.reviews()); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProductionServiceNamedPreviewStaysInTheChart(t *testing.T) {
	service := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name}}
	}
	made := workload{template: map[string]any{}, services: services{
		production: []map[string]any{service("web"), service("preview")}, preview: service("canary"),
	}}
	made.of.SetName("web")
	chart, _, _, err := chartOf(made)
	if err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{"service": "web", "service-preview": "preview", "preview-service": "canary"} {
		if got := chart["templates/"+path+".yaml"]; !strings.Contains(got, "name: "+name+"\n") {
			t.Errorf("%s has no Service %s: %q", path, name, got)
		}
	}
}
