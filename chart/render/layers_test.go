// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

func TestNullTakesADefaultOfTheChartAway(t *testing.T) {
	c := sample(t, map[string]string{
		"values.yaml": "keep: a\ngone: b\n",
		"templates/service.yaml": "apiVersion: v1\nkind: Service\n" +
			"metadata: {name: sample, annotations: {values: {{ .Values | toJson | quote }}}}\n",
	})
	layers := values.Layers{PerCluster: []shipper.ValuesFor{{Name: "west", Values: &shipper.ChartValues{"gone": nil}}}}
	west, err := layers.At(values.Place{Cluster: "west"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range renderTarget(t, c, *west).Objects {
		if o.GetKind() == "Service" {
			if got := o.GetAnnotations()["values"]; got != `{"global":{},"keep":"a"}` && got != `{"keep":"a"}` {
				t.Errorf("the chart sees %s", got)
			}
		}
	}
}

func TestReplicasDifferFromPlaceToPlace(t *testing.T) {
	c := sample(t, map[string]string{
		"templates/deployment.yaml": strings.Replace(deployment, "spec: {template", "spec: {replicas: {{ .Values.n }}, template", 1),
	})
	rel := &shipper.Release{}
	rel.Name, rel.Namespace = target.ReleaseName, target.Namespace
	rel.Spec.Environment = shipper.ReleaseEnvironment{
		Values:           &shipper.ChartValues{"n": int64(3)},
		ValuesPerRegion:  []shipper.ValuesFor{{Name: "us", Values: &shipper.ChartValues{"n": int64(5)}}},
		ValuesPerCluster: []shipper.ValuesFor{{Name: "west", Values: &shipper.ChartValues{"n": int64(7)}}},
	}
	for place, want := range map[values.Place]int32{
		{}: 3, {Cluster: "mid", Region: "eu"}: 3, {Cluster: "east", Region: "us"}: 5, {Cluster: "west", Region: "us"}: 7,
	} {
		got, err := c.Replicas(t.Context(), rel, values.LayersOf(&rel.Spec.Environment), render.Cluster{Place: place})
		if err != nil || got != want {
			t.Errorf("%v: got %d, %v, want %d", place, got, err, want)
		}
	}
}

func TestReplicasDifferByTheVersionOfTheCluster(t *testing.T) {
	const capable = `spec: {replicas: {{ if .Capabilities.APIVersions.Has "example.com/v1" }}5{{ else if ` +
		`semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version }}3{{ else }}1{{ end }}, template`
	c := sample(t, map[string]string{"templates/deployment.yaml": strings.Replace(deployment, "spec: {template", capable, 1)})
	rel := &shipper.Release{}
	rel.Name, rel.Namespace = target.ReleaseName, target.Namespace
	for want, in := range map[int32]render.Cluster{
		1: {KubeVersion: "v1.32.0"}, 3: {KubeVersion: "v1.33.1"}, 5: {KubeVersion: "v1.32.0", APIVersions: []string{"example.com/v1"}},
	} {
		if got, err := c.Replicas(t.Context(), rel, values.Layers{}, in); err != nil || got != want {
			t.Errorf("%v: got %d, %v, want %d", in, got, err, want)
		}
	}
}

func TestErrorsOfRenderingAreWithheld(t *testing.T) {
	const canary = "k33p-this"
	values := &shipper.ChartValues{"secret": canary}
	for sentence, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"of a template that fails": {
			map[string]string{"templates/x.yaml": "a: 1\nb: {{ fail .Values.secret }}\n"}, "it does not render, at sample/templates/x.yaml:2:6",
		},
		"of a text that is not YAML": {map[string]string{"templates/x.yaml": "{{ .Values.secret }}: [\n"},
			"it cannot be rendered with these values"},
		"of a number that is none": {
			map[string]string{"templates/deployment.yaml": strings.Replace(
				deployment, "spec: {template", "spec: {replicas: {{ .Values.secret }}, template", 1)},
			"it cannot be rendered with these values",
		},
		"of a schema": {
			map[string]string{"values.schema.json": `{"properties": {"secret": {"enum": ["x"]}}}`}, "the values do not fit the schema of sample",
		},
		"of a chart without a Deployment": {
			map[string]string{"templates/deployment.yaml": ""}, "it must have exactly one Deployment, but 0 are found",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := sample(t, tc.files).Render(t.Context(), values, target)
			if err == nil {
				t.Fatal("it renders")
			}
			got := chart.Withheld(err).Error()
			if want := `chart "sample" 1.2.3: ` + tc.want + chart.Unsaid; got != want {
				t.Errorf("got  %s\nwant %s\nof   %s", got, want, err)
			}
		})
	}
	away := &chart.Error{Reason: shipper.ChartFetchFailure, Message: "away"}
	if got := chart.Withheld(away); !errors.Is(got, away) {
		t.Errorf("what is not of rendering becomes %v", got)
	}
}
