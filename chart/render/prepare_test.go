// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// asYAML parses the objects of a golden text, parted by lines of dashes.
func asYAML(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(asJSON); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func TestPrepareTestNginx(t *testing.T) {
	m := renderTarget(t, opened(t, "test-nginx", "0.0.2"), map[string]any{"replicaCount": int64(3), "nameOverride": "web"})
	if got := m.Replicas(); got != 3 {
		t.Errorf("%d replicas", got)
	}
	before := m.Objects[1].DeepCopy()
	for range 2 { // the second finds the first has changed nothing
		got, err := m.Prepare(target)
		if err != nil {
			t.Fatal(err)
		}
		want := asYAML(t, `apiVersion: v1
kind: Service
metadata:
  name: web-prod
  labels:
    app: web
    release: super-6f19aa85-0
    shipper-lb: production
    shipper-app: super
    shipper-release: super-6f19aa85-0
    shipper-release-hash: 6f19aa85
    shipper-owned-by: super-6f19aa85-0
    team: web
spec:
  type: ClusterIP
  selector:
    shipper-app: super
    shipper-traffic-status: enabled
  ports:
  - {name: http, port: 80, targetPort: 80}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: super-6f19aa85-0-web
  labels:
    app: web
    release: super-6f19aa85-0
    shipper-app: super
    shipper-release: super-6f19aa85-0
    shipper-release-hash: 6f19aa85
    shipper-owned-by: super-6f19aa85-0
    team: web
spec:
  replicas: 0
  selector:
    matchLabels:
      app: web
      shipper-app: super
      shipper-release: super-6f19aa85-0
      shipper-release-hash: 6f19aa85
      shipper-owned-by: super-6f19aa85-0
      team: web
  template:
    metadata:
      labels:
        app: web
        name: nginx
        version: "2"
        shipper-app: super
        shipper-release: super-6f19aa85-0
        shipper-release-hash: 6f19aa85
        shipper-owned-by: super-6f19aa85-0
        team: web
    spec:
      containers:
      - name: test-nginx
        image: nginx:stable
        ports: [{containerPort: 80}]`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(*before, m.Objects[1]); diff != "" {
		t.Errorf("preparing changed the manifest: %s", diff)
	}
}

// Parts of charts that tests of Prepare are made of.
const (
	named   = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .Release.Name }}\"}\n"
	serving = "apiVersion: v1\nkind: Service\n"
)

func TestPrepareMends(t *testing.T) {
	tests := map[string]struct {
		deployment, service  string
		workaround           string
		matchLabels, podTags string
	}{
		"a Deployment without selector and labels": {
			deployment: named + "spec: {template: {spec: {}}}",
		},
		"a Deployment whose maps are null": {
			deployment: named + "spec: {selector: null, template: {metadata: {labels: null}}}",
		},
		"a Deployment without any spec": {deployment: named},
		"a selector of expressions": {
			deployment: named + "spec: {selector: {matchExpressions: [{key: tier, operator: In, values: [web]}]}, " +
				"template: {metadata: {labels: {tier: web}}}}",
			podTags: "tier: web",
		},
		"labels that are Shipper's to give": {
			deployment: named + "spec: {selector: {matchLabels: {shipper-app: other}}, template: {metadata: {labels: {shipper-app: more}}}}",
		},
		"a Service without spec":    {service: serving + "metadata: {name: s}"},
		"a Service with a selector": {service: serving + "metadata: {name: s}\nspec: {selector: {team: web}}"},
		"a Service of another app":  {service: serving + "metadata: {name: s}\nspec: {selector: {shipper-app: other}}"},
		"the release in the selector, with the workaround": {
			service: serving + "metadata: {name: s}\nspec: {selector: {release: \"{{ .Release.Name }}\"}}", workaround: "true",
		},
		"the instance in the selector, with the workaround": {
			service:    serving + "metadata: {name: s}\nspec: {selector: {app.kubernetes.io/instance: \"{{ .Release.Name }}\"}}",
			workaround: "true",
		},
		"a release in the selector that is not ours, with the workaround": {
			deployment: named + "spec: {template: {metadata: {labels: {release: fixed}}}}", podTags: "release: fixed",
			service: serving + "metadata: {name: s}\nspec: {selector: {release: fixed}}", workaround: "true",
		},
		"a selector that needs no workaround, with an odd one": {
			service: serving + "metadata: {name: s}\nspec: {selector: {team: web}}", workaround: "maybe",
		},
	}
	const own = "{shipper-app: super, shipper-release: super-6f19aa85-0, shipper-release-hash: 6f19aa85, " +
		"shipper-owned-by: super-6f19aa85-0, team: web"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if test.deployment != "" {
				files["templates/deployment.yaml"] = test.deployment
			}
			if test.service != "" {
				files["templates/service.yaml"] = test.service
			}
			on := target
			on.HelmWorkaround = test.workaround
			on.Labels = map[string]string{
				"shipper-release-hash": "6f19aa85", "team": "web", "shipper-app": "spoilt", "shipper-release": "spoilt",
				"shipper-traffic-status": "enabled", "shipper-lb": "production",
			}
			got, err := renderTarget(t, sample(t, files), nil).Prepare(on)
			if err != nil {
				t.Fatal(err)
			}
			maps := map[string]map[string]string{}
			for key, fields := range map[string][]string{
				"0 labels": {"metadata", "labels"}, "0 selector": {"spec", "selector"}, "1 labels": {"metadata", "labels"},
				"1 selector": {"spec", "selector", "matchLabels"}, "1 pods": {"spec", "template", "metadata", "labels"},
			} {
				maps[key], _, err = unstructured.NestedStringMap(got[key[0]-'0'].Object, fields...)
				if err != nil {
					t.Fatal(err)
				}
			}
			var want map[string]map[string]string
			text := "0 labels: " + own + ", shipper-lb: production}\n1 labels: " + own + "}\n1 selector: " + own + "}\n" +
				"1 pods: " + own + ", " + test.podTags + "}\n" +
				"0 selector: {shipper-app: super, shipper-traffic-status: enabled}\n"
			if err := yaml.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, maps); diff != "" {
				t.Error(diff)
			}
			if n, _, err := unstructured.NestedInt64(got[1].Object, "spec", "replicas"); n != 0 || err != nil {
				t.Errorf("%d replicas, %v", n, err)
			}
		})
	}
}

func TestPrepareChoosesTheService(t *testing.T) {
	one := func(name, labels string) string {
		return serving + "metadata: {name: " + name + ", labels: {" + labels + "}}\n"
	}
	const (
		lb   = "shipper-lb: production"
		more = "; give the Service that takes the production traffic the label shipper-lb: production, and no other"
	)
	const knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: k}\n"
	tests := map[string]struct{ services, want string }{
		"one Service is promoted":                  {one("a", ""), "a"},
		"one labelled Service":                     {one("a", lb), "a"},
		"one labelled Service of two":              {one("a", "") + "---\n" + one("b", lb), "b"},
		"one Service labelled for something else":  {one("a", "shipper-lb: staging"), "a"},
		"a Service of Knative is not counted":      {one("a", "") + "---\n" + knative, "a"},
		"no Service":                               {"#", "error 0"},
		"two Services, none labelled":              {one("a", "") + "---\n" + one("b", ""), "error 0"},
		"two Services, both labelled":              {one("a", lb) + "---\n" + one("b", lb), "error 2"},
		"two Services, one labelled for something": {one("a", "shipper-lb: staging") + "---\n" + one("b", ""), "error 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := renderTarget(t, sample(t, map[string]string{"templates/service.yaml": test.services}), nil).Prepare(target)
			if n, ok := strings.CutPrefix(test.want, "error "); ok {
				want := `one and only one v1.Service object with label "shipper-lb" is required, but ` + n + ` found instead` + more
				if got := read(t, err); got.Message != want || got.Reason != "ChartError" {
					t.Error(got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var shifting []string
			for _, o := range objects {
				if status, _, _ := unstructured.NestedString(o.Object, "spec", "selector", "shipper-traffic-status"); status == "enabled" {
					shifting = append(shifting, o.GetName())
				}
			}
			if diff := cmp.Diff([]string{test.want}, shifting); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrepareTakesOneServiceForPreviews(t *testing.T) {
	const (
		head = serving + "metadata: {name: "
		prod = head + "a, labels: {shipper-lb: production}}\n"
		show = head + "b, labels: {shipper-lb: preview}}\n"
	)
	another := strings.Replace(show, "name: b", "name: c", 1)
	named := strings.Replace(show, "name: b", "name: b-{{ .Release.Name }}", 1)
	external := show + "spec: {type: ExternalName, externalName: x.example.com}\n"
	for sentence, tc := range map[string]struct{ services, want string }{
		"beside the production Service":      {prod + "---\n" + show, "b selects super none, preview"},
		"beside one that is promoted":        {head + "a}\n---\n" + show, "b selects super none, preview"},
		"not without a production Service":   {show, `one and only one v1.Service object with label "shipper-lb" is required, but 0 found`},
		"not two":                            {prod + "---\n" + show + "---\n" + another, "have the label shipper-lb: preview"},
		"not with the name of the Release":   {prod + "---\n" + named, "the name of the Service carries that of the release"},
		"not one that has no Pods to select": {prod + "---\n" + external, "ExternalName"},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects, err := renderTarget(t, sample(t, map[string]string{"templates/service.yaml": tc.services}), nil).Prepare(target)
			got := ""
			for _, o := range objects {
				if o.GetLabels()[shipper.LBLabel] == shipper.LBForPreview {
					selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
					got = o.GetName() + " selects " + selector[shipper.AppLabel] + " " + selector[shipper.ReleaseLabel] + ", preview"
				}
			}
			if err != nil {
				got = read(t, err).Message
			}
			if !strings.Contains(got, tc.want) && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	const label = " This will break shipper traffic shifting logic. Take it out of the selector or, when the chart cannot be changed, " +
		`label the Application enable-helm-release-workaround: "true" to have Shipper take it out`
	tests := map[string]struct {
		name, file, content string
		workaround          string
		want                string
	}{
		"a Deployment with the same name for every release": {
			name: "invalid-deployment-name",
			want: `Deployment "invalid-deployment-name" has invalid name. The name of the Deployment should be templated with ` +
				`{{ .Release.Name }}.`,
		},
		"a selector that the Pods' labels do not match": {
			name: "no-template-labels",
			want: `template no-template-labels/templates/deployment.yaml: Deployment "super-6f19aa85-0-no-template-labels": spec.selector ` +
				`asks for "app=no-template-labels", but its Pods have no such label; give spec.template.metadata.labels what the selector ` +
				`asks for`,
		},
		"a Service bound to the release": {
			name: "release-selector",
			want: `template release-selector/templates/service.yaml: Service "release-selector": its selector has release: super-6f19aa85-0, ` +
				`which binds it to one release.` + label,
		},
		"a Service bound to the release, with the workaround switched off": {
			name: "release-selector", workaround: "false",
			want: `template release-selector/templates/service.yaml: Service "release-selector": its selector has release: super-6f19aa85-0, ` +
				`which binds it to one release.` + label,
		},
		"a workaround that is neither true nor false": {
			name: "release-selector", workaround: "yes",
			want: `Unexpected value for label "enable-helm-release-workaround": "yes"; it may be "true" or "false"`,
		},
		"a Service bound to the release as newer charts do": {
			file:    "service.yaml",
			content: serving + "metadata: {name: s}\nspec: {selector: {app.kubernetes.io/instance: \"{{ .Release.Name }}\"}}",
			want: `template sample/templates/service.yaml: Service "s": its selector has app.kubernetes.io/instance: super-6f19aa85-0, ` +
				`which binds it to one release.` + label,
		},
		"a Service whose name carries the release's": {
			file: "service.yaml", content: serving + "metadata: {name: \"{{ .Release.Name }}-s\"}",
			want: `template sample/templates/service.yaml: Service "super-6f19aa85-0-s": the name of the Service carries that of the release, ` +
				`so that every release would have its own and no traffic could be shifted from one to the other; give it a name that stays ` +
				`the same from release to release, such as {{ .Chart.Name }} in its template (fullnameOverride names the Deployment too, ` +
				`which needs the release's name)`,
		},
		"a Service that selects none of the Pods": {
			file: "service.yaml", content: serving + "metadata: {name: s}\nspec: {selector: {app: elsewhere}}",
			want: `template sample/templates/service.yaml: Service "s": spec.selector asks for "app=elsewhere", but the Pods of the ` +
				`Deployment have no such label`,
		},
		"a Service that is only a name": {
			file: "service.yaml", content: serving + "metadata: {name: s}\nspec: {type: ExternalName}",
			want: `template sample/templates/service.yaml: Service "s": a Service of type ExternalName has no Pods to shift traffic between`,
		},
		"a Service whose selector is text": {
			file: "service.yaml", content: serving + "metadata: {name: s}\nspec: {selector: all}",
			want: `template sample/templates/service.yaml: Service "s": spec.selector is not a map`,
		},
		"a Service whose spec is text": {
			file: "service.yaml", content: serving + "metadata: {name: s}\nspec: all",
			want: `template sample/templates/service.yaml: Service "s": spec.selector is not where it should be`,
		},
		"a selector with a number": {
			file: "deployment.yaml", content: named + "spec: {selector: {matchLabels: {version: 1}}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": spec.selector.matchLabels.version is 1, ` +
				`which is not a string: quote it`,
		},
		"a selector that is a list": {
			file: "deployment.yaml", content: named + "spec: {selector: {matchExpressions: {}}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": spec.selector cannot be read: ` +
				`cannot restore slice from map`,
		},
		"a selector with an unknown operator": {
			file: "deployment.yaml", content: named + "spec: {selector: {matchExpressions: [{key: a, operator: Near}]}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": spec.selector cannot be read: ` +
				`"Near" is not a valid label selector operator`,
		},
		"an expression that the Pods' labels do not meet": {
			file: "deployment.yaml", content: named + "spec: {selector: {matchExpressions: [{key: tier, operator: Exists}]}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": spec.selector asks for "tier", but its Pods ` +
				`have no such label; give spec.template.metadata.labels what the selector asks for`,
		},
		"a template that is text": {
			file: "deployment.yaml", content: named + "spec: {template: {metadata: text}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": spec.template.metadata.labels is not where it ` +
				`should be`,
		},
		"Pods that would have traffic from the start": {
			file: "deployment.yaml", content: named + "spec: {template: {metadata: {labels: {shipper-traffic-status: enabled}}}}",
			want: `template sample/templates/deployment.yaml: Deployment "super-6f19aa85-0": its Pods have the label shipper-traffic-status, ` +
				`which is Shipper's to give: they would have traffic from the start`,
		},
		"an object in another namespace": {
			file: "x.yaml", content: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: kube-system}",
			want: `template sample/templates/x.yaml: Secret "s" asks for the namespace "kube-system", but a release is installed in its own ` +
				`namespace "shop"; leave metadata.namespace out, or use {{ .Release.Namespace }}`,
		},
		"a NetworkPolicy in another namespace": {
			file: "x.yaml", content: "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: s, namespace: a}",
			want: `template sample/templates/x.yaml: NetworkPolicy "s" asks for the namespace "a", but a release is installed in its own ` +
				`namespace "shop"; leave metadata.namespace out, or use {{ .Release.Namespace }}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c *render.Chart
			if test.name != "" {
				c = opened(t, test.name, "0.0.1")
			} else {
				c = sample(t, map[string]string{"templates/" + test.file: test.content})
			}
			on := target
			on.HelmWorkaround = test.workaround
			_, err := renderTarget(t, c, nil).Prepare(on)
			got := read(t, err)
			if diff := cmp.Diff(failure{Reason: "ChartError", Message: test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrepareLeavesNamespacesThatMayBe(t *testing.T) {
	c := sample(t, map[string]string{"templates/x.yaml": `
{apiVersion: v1, kind: Secret, metadata: {name: same, namespace: shop}}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: custom, namespace: other}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: nowhere, namespace: other}}
`})
	if _, err := renderTarget(t, c, nil).Prepare(target); err != nil {
		t.Error(err)
	}
}

func TestWorkaroundMakesReleaseSelectorWork(t *testing.T) {
	on := target
	on.HelmWorkaround = "true"
	objects, err := renderTarget(t, opened(t, "release-selector", "0.0.1"), nil).Prepare(on)
	if err != nil {
		t.Fatal(err)
	}
	selector, _, err := unstructured.NestedStringMap(objects[0].Object, "spec", "selector")
	want := map[string]string{"shipper-app": "super", "shipper-traffic-status": "enabled"}
	if diff := cmp.Diff(want, selector); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestDeploymentRule counts what counts as a Deployment.
func TestDeploymentRule(t *testing.T) {
	object := func(apiVersion string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": "Deployment", "metadata": map[string]any{"name": "x"},
		}}
	}
	tests := map[string]struct {
		apiVersions []string
		want        string
	}{
		"none": {[]string{"v2"}, "it must have exactly one Deployment, but 0 are found"},
		"two":  {[]string{"apps/v1", "apps/v1"}, "it must have exactly one Deployment, but 2 are found (x, x)"},
		"apps": {[]string{"apps/v1beta2"}, `Deployment "x" has the apiVersion apps/v1beta2; Shipper rolls out Deployments of apps/v1 only`},
		"legacy": {
			[]string{"extensions/v1beta1"},
			`Deployment "x" has the apiVersion extensions/v1beta1; Shipper rolls out Deployments of apps/v1 only`,
		},
		"foreign": {[]string{"example.com/v1"}, "it must have exactly one Deployment, but 0 are found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var m render.Manifest
			for _, v := range test.apiVersions {
				m.Objects = append(m.Objects, object(v))
			}
			_, err := m.Prepare(target)
			if diff := cmp.Diff(failure{Reason: "WrongChartDeployments", Message: test.want}, read(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
