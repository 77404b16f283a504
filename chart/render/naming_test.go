// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/test/charts"
)

func TestNaming(t *testing.T) {
	worker := `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec: {selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}}}
`
	tests := map[string]struct {
		files      map[string]string
		workaround string
		want       shipper.ChartNaming
	}{
		"a chart for the original": {nil, "", shipper.NamingByRelease},
		"a chart with a StatefulSet, too": {
			map[string]string{"templates/s.yaml": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}}"}, "", shipper.NamingByRelease,
		},
		"two Deployments":              {map[string]string{"templates/w.yaml": worker}, "", shipper.NamingByApplication},
		"no Deployment":                {map[string]string{"templates/deployment.yaml": ""}, "", shipper.NamingByApplication},
		"a Deployment of a fixed name": {map[string]string{"templates/deployment.yaml": worker}, "", shipper.NamingByApplication},
		"no Service":                   {map[string]string{"templates/service.yaml": ""}, "", shipper.NamingByApplication},
		"a Service of the release's name": {
			map[string]string{"templates/service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: '{{ .Release.Name }}'}}"},
			"", shipper.NamingByApplication,
		},
		"a Service of the release's Pods": {map[string]string{"templates/service.yaml": releaseService}, "", shipper.NamingByApplication},
		"the same, with the workaround":   {map[string]string{"templates/service.yaml": releaseService}, "true", shipper.NamingByRelease},
		"nothing": {
			map[string]string{"templates/deployment.yaml": "", "templates/service.yaml": ""}, "", shipper.NamingByApplication,
		},
		"templates that fail": {map[string]string{"templates/f.yaml": `{{ fail "no" }}`}, "", shipper.NamingByApplication},
		"an object in another namespace": {
			map[string]string{"templates/r.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}"},
			"", shipper.NamingByApplication,
		},
		"a hook that Shipper does not run": {
			map[string]string{"templates/h.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: h, annotations: {helm.sh/hook: post-erase}}}"},
			"", shipper.NamingByApplication,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			of := target
			of.HelmWorkaround = tc.workaround
			of.Naming = shipper.NamingByApplication // has no effect
			got, err := sample(t, tc.files).Naming(t.Context(), nil, of)
			if got != tc.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// releaseService is a Service that selects the Pods of one release.
const releaseService = `apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {release: '{{ .Release.Name }}'}}
`

func TestNamingIsUnknownWhenTheTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := sample(t, nil).Naming(ctx, nil, target); got != "" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestByReleaseIsTheDefault renders and prepares all charts without a naming, and by Release.
func TestByReleaseIsTheDefault(t *testing.T) {
	all, err := charts.All()
	if err != nil {
		t.Fatal(err)
	}
	prepared := func(of charts.Archive, naming shipper.ChartNaming) ([]unstructured.Unstructured, string) {
		c, err := render.Open(of.Bytes)
		if err != nil {
			return nil, err.Error()
		}
		of1 := target
		of1.Naming, of1.Revision = naming, 3 // the revision has no effect by Release
		manifest, err := c.Render(t.Context(), nil, of1)
		if err != nil {
			return nil, err.Error()
		}
		objects, err := manifest.Prepare(of1)
		if err != nil {
			return nil, err.Error()
		}
		return objects, ""
	}
	n := 0
	for _, of := range all {
		objects, refused := prepared(of, "")
		same, sameRefused := prepared(of, shipper.NamingByRelease)
		if diff := cmp.Diff(objects, same); diff != "" || refused != sameRefused {
			t.Errorf("%s %s: %q and %q: %s", of.Name, of.Version, refused, sameRefused, diff)
		}
		if refused == "" {
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d charts fit the rules of the original", n)
	}
}

func TestReleaseIsHelmsByApplication(t *testing.T) {
	files := map[string]string{"templates/service.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: release}
data:
  release: "{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}"
`}
	tests := map[string]struct {
		naming   shipper.ChartNaming
		revision int
		want     string
	}{
		"by Release":                       {shipper.NamingByRelease, 0, "super-6f19aa85-0 shop 1 true false"},
		"by Release, a later one":          {shipper.NamingByRelease, 4, "super-6f19aa85-0 shop 1 true false"},
		"by Application, without a number": {shipper.NamingByApplication, 0, "super shop 1 true false"},
		"by Application, the first":        {shipper.NamingByApplication, 1, "super shop 1 true false"},
		"by Application, a later one":      {shipper.NamingByApplication, 4, "super shop 4 false true"},
	}
	c := sample(t, files)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			of := target
			of.Naming, of.Revision = tc.naming, tc.revision
			manifest, err := c.Render(t.Context(), nil, of)
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedString(manifest.Objects[0].Object, "data", "release")
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestReplicasByApplication(t *testing.T) {
	of := target
	of.Naming = shipper.NamingByApplication
	files := map[string]string{"templates/s.yaml": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 4}}"}
	manifest, err := sample(t, files).Render(t.Context(), &shipper.ChartValues{}, of)
	if err != nil {
		t.Fatal(err)
	}
	if n := manifest.Replicas(); n != 5 {
		t.Errorf("%d Pods, want those of the Deployment and the StatefulSet", n)
	}
}
