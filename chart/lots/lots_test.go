// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart/lots"
)

var release = lots.Release{App: "shop", Name: "shop-6f19aa85-0"}

// objects parses YAML documents, parted by lines of dashes.
func objects(t testing.TB, text string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o := unstructured.Unstructured{}
		if err := o.UnmarshalJSON(asJSON); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// web is a Deployment with this strategy, and this in the spec of its Pods.
func web(strategy, pod string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {strategy: %s, `+
		`selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, tier: front}}, spec: %s}}}`, strategy, pod)
}

// volumeClaim is a PersistentVolumeClaim with these access modes.
func volumeClaim(modes string) string {
	return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [" + modes + "]}}"
}

// ofKind is an object of another kind with the name web.
func ofKind(apiVersion, kind, spec string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web}, spec: %s}", apiVersion, kind, spec)
}

func TestLotsOfWorkloads(t *testing.T) {
	const mounts, reads = "{volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}",
		"{volumes: [{name: v, persistentVolumeClaim: {claimName: data, readOnly: true}}]}"
	tests := map[string]struct {
		objects string
		want    string
	}{
		"a Deployment":              {web("{}", "{}"), "side by side"},
		"one that rolls":            {web("{type: RollingUpdate}", "{}"), "side by side"},
		"one that is recreated":     {web("{type: Recreate}", "{}"), "in place: Recreate"},
		"one on its node's network": {web("{}", "{hostNetwork: true}"), "in place: host network"},
		"one with a port of its node": {
			web("{}", "{containers: [{ports: [{hostPort: 80}, {containerPort: 1}]}]}"), "in place: host port 80",
		},
		"one with several": {
			web("{}", "{initContainers: [{ports: [{hostPort: 53}]}], containers: [{ports: [{hostPort: 80}, {hostPort: 53}]}]}"),
			"in place: host ports 53, 80",
		},
		"a host port of 0 is none": {web("{}", "{containers: [{ports: [{hostPort: 0}]}]}"), "side by side"},
		"one with a claim for one node": {
			web("{}", mounts) + "\n---\n" + volumeClaim("ReadWriteOnce"), "in place: claim data can be mounted by one node",
		},
		"one with a claim for one Pod": {
			web("{}", mounts) + "\n---\n" + volumeClaim("ReadWriteOncePod"), "in place: claim data can be mounted by one node",
		},
		"one with a claim without modes": {
			web("{}", mounts) + "\n---\n" + volumeClaim(""), "in place: claim data can be mounted by one node",
		},
		"one with a claim for many":        {web("{}", mounts) + "\n---\n" + volumeClaim("ReadWriteOnce, ReadWriteMany"), "side by side"},
		"one with a claim to read by many": {web("{}", mounts) + "\n---\n" + volumeClaim("ReadOnlyMany"), "side by side"},
		"one that writes where many read": {
			web("{}", mounts) + "\n---\n" + volumeClaim("ReadOnlyMany, ReadWriteOnce"), "in place: claim data can be mounted by one node",
		},
		"one that reads where many read": {web("{}", reads) + "\n---\n" + volumeClaim("ReadOnlyMany, ReadWriteOnce"), "side by side"},
		"a claim that is not in the chart": {
			web("{}", mounts), "in place: claim data is not in the chart, and may be mountable by one node",
		},
		"one with a disk": {
			web("{}", "{volumes: [{name: d, gcePersistentDisk: {pdName: x}}]}"), "in place: volume d can be mounted by one node",
		},
		"one that reads a disk": {
			web("{}", "{volumes: [{name: d, gcePersistentDisk: {pdName: x, readOnly: true}}]}"), "side by side",
		},
		"one with a claim for each Pod": {web("{}", "{volumes: [{name: d, ephemeral: {volumeClaimTemplate: {}}}]}"), "side by side"},
		"several reasons": {
			web("{type: Recreate}", mounts), "in place: Recreate; claim data is not in the chart, and may be mountable by one node",
		},
		"a Deployment that is not well made": {web("Recreate", "[hostNetwork]"), "side by side"},
		"a StatefulSet":                      {ofKind("apps/v1", "StatefulSet", "{}"), "in place: StatefulSet"},
		"a DaemonSet":                        {ofKind("apps/v1", "DaemonSet", "{}"), "in place: DaemonSet"},
		"a Job":                              {ofKind("batch/v1", "Job", "{}"), "side by side: a Job cannot be changed"},
		"a CronJob":                          {ofKind("batch/v1", "CronJob", "{}"), "shared: one schedule for all Releases"},
		"a ReplicaSet":                       {ofKind("apps/v1", "ReplicaSet", "{}"), "shared"},
		"a Pod":                              {ofKind("v1", "Pod", "{hostNetwork: true}"), "shared"},
		"a PodDisruptionBudget":              {ofKind("policy/v1", "PodDisruptionBudget", "{}"), "shared: covers the Pods of all Releases"},
		"a Deployment of another group":      {ofKind("example.com/v1", "Deployment", "{strategy: {type: Recreate}}"), "shared"},
		"a definition of a kind":             {ofKind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "{}"), "shared"},
		"a list that was not taken apart":    {"{apiVersion: v1, kind: List, items: [{kind: Deployment}]}", "shared"},
		"an object without a name":           {"{apiVersion: apps/v1, kind: Deployment, metadata: {generateName: web-}}", "side by side"},
		"metadata that is a text":            {"{apiVersion: apps/v1, kind: Deployment, metadata: web, spec: web}", "side by side"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := lots.Of(objects(t, tc.objects), release).Entries[0]
			got := string(e.Lot)
			if e.Reason != "" {
				got += ": " + e.Reason
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestScalersAreWhereWhatTheyScaleIs(t *testing.T) {
	const scaler = `{apiVersion: %s, kind: %s, metadata: {name: scaler}, spec: {%s: {%s}}}`
	deployed, recreated := web("{}", "{}"), web("{type: Recreate}", "{}")
	set := ofKind("apps/v1", "StatefulSet", "{}")
	tests := map[string]struct{ scaled, apiVersion, kind, field, target, want string }{
		"a HorizontalPodAutoscaler": {
			deployed, "autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "kind: Deployment, name: web",
			"side by side: scales Deployment web, scaler-6f19aa85-0 of web-6f19aa85-0",
		},
		"a ScaledObject, without a kind": {
			deployed, "keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef", "name: web",
			"side by side: scales Deployment web, scaler-6f19aa85-0 of web-6f19aa85-0",
		},
		"a VerticalPodAutoscaler": {
			deployed, "autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "targetRef", "kind: Deployment, name: web",
			"side by side: scales Deployment web, scaler-6f19aa85-0 of web-6f19aa85-0",
		},
		"one of a Deployment in place": {
			recreated, "autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "kind: Deployment, name: web",
			"shared: scales Deployment web, scaler of web",
		},
		"one of a StatefulSet": {
			set, "autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "kind: StatefulSet, name: web",
			"shared: scales StatefulSet web, scaler of web",
		},
		"one of a StatefulSet beside a Deployment of its name": {
			set + "\n---\n" + deployed, "autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "kind: StatefulSet, name: web",
			"shared: scales StatefulSet web, scaler of web",
		},
		"one of what is not in the chart": {
			deployed, "autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef", "kind: Deployment, name: other",
			"shared: , scaler of other",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scaler := fmt.Sprintf(scaler, tc.apiVersion, tc.kind, tc.field, tc.target)
			e := lots.Of(objects(t, scaler+"\n---\n"+tc.scaled), release).Entries[0]
			of, _, _ := unstructured.NestedString(e.Object.Object, "spec", tc.field, "name")
			if got := fmt.Sprintf("%s: %s, %s of %s", e.Lot, e.Reason, e.Object.GetName(), of); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestKEDAGetsAnotherAutoscalerForEachRelease: two ScaledObjects of one autoscaler would fight for it.
func TestKEDAGetsAnotherAutoscalerForEachRelease(t *testing.T) {
	table := lots.Of(objects(t, web("{}", "{}")+"\n---\n"+`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s}, `+
		`spec: {scaleTargetRef: {name: web}, advanced: {horizontalPodAutoscalerConfig: {name: cpu}}}}`), release)
	got, _, _ := unstructured.NestedString(table.Entries[1].Object.Object, "spec", "advanced", "horizontalPodAutoscalerConfig", "name")
	if got != "cpu-6f19aa85-0" {
		t.Error(got)
	}
}

func TestReplicasAreThoseOfAllWorkloads(t *testing.T) {
	tests := map[string]struct {
		objects string
		want    int32
		refused []string
	}{
		"none":            {ofKind("v1", "ConfigMap", "{}"), 0, nil},
		"one by default":  {ofKind("apps/v1", "Deployment", "{}"), 1, nil},
		"null is default": {ofKind("apps/v1", "StatefulSet", "{replicas: null}"), 1, nil},
		"a sum": {
			ofKind("apps/v1", "Deployment", "{replicas: 3}") + "\n---\n" + ofKind("apps/v1", "StatefulSet", "{replicas: 2}"), 5, nil,
		},
		"none of a DaemonSet": {ofKind("apps/v1", "DaemonSet", "{replicas: 3}"), 0, nil},
		"none of a Job":       {ofKind("batch/v1", "Job", "{replicas: 3}"), 0, nil},
		"too many": {
			ofKind("apps/v1", "Deployment", "{replicas: 2147483647}") + "\n---\n" + ofKind("apps/v1", "StatefulSet", "{}"), 2147483647, nil,
		},
		"fewer than none": {ofKind("apps/v1", "Deployment", "{replicas: -1}"), 0, []string{
			"Deployment web: spec.replicas is -1, which is not a number of Pods: change it by a value of the chart",
		}},
		"a text": {ofKind("apps/v1", "StatefulSet", `{replicas: "3"}`), 0, []string{
			`StatefulSet web: spec.replicas is "3", which is not a number of Pods: change it by a value of the chart`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			table := lots.Of(objects(t, tc.objects), release)
			if got := table.Replicas(); got != tc.want {
				t.Errorf("%d Pods, want %d", got, tc.want)
			}
			if diff := cmp.Diff(tc.refused, table.Refused); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	old := ofKind("extensions/v1beta1", "Deployment", "{}") + "\n---\n" + ofKind("apps/v1beta2", "StatefulSet", "{}")
	table := lots.Of(objects(t, old), release)
	want := []string{
		"Deployment web has the apiVersion extensions/v1beta1; Shipper rolls out Deployments of apps/v1 only: change the chart",
		"StatefulSet web has the apiVersion apps/v1beta2; Shipper rolls out StatefulSets of apps/v1 only: change the chart",
	}
	if diff := cmp.Diff(want, table.Refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTwoObjectsOfOneNameAreRefused(t *testing.T) {
	other := strings.Replace(web("{type: Recreate}", "{}"), "name: web", "name: web-6f19aa85-0", 1)
	table := lots.Of(objects(t, web("{}", "{}")+"\n---\n"+other), release)
	want := []string{
		`two objects of the chart would be Deployment "web-6f19aa85-0", which has the suffix of the Release: give one of them another name`,
	}
	if diff := cmp.Diff(want, table.Refused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	scaler := ofKind("autoscaling/v2", "HorizontalPodAutoscaler", "{scaleTargetRef: {kind: Deployment, name: web}}")
	const waits = "Deployment web names Job web in its arguments, which has another name in each Release: " +
		"a container that waits for it never ends; make the Job a hook of the chart"
	canary := ofKind("flagger.app/v1beta1", "Canary", "{targetRef: {kind: Deployment, name: web}}")
	tests := map[string]struct {
		objects string
		want    []string
	}{
		"nothing to say": {web("{}", "{}"), nil},
		"two that scale": {web("{}", "{}") + "\n---\n" + scaler, []string{
			"HorizontalPodAutoscaler web scales Deployment web, which Shipper does too, step by step: " +
				"leave it out of the chart, or disable it by a value",
		}},
		"one that scales in place": {web("{type: Recreate}", "{}") + "\n---\n" + scaler, nil},
		"one that names what is renamed": {web("{}", "{}") + "\n---\n" + canary, []string{
			"Canary web names Deployment web, which exists once per Release under other names",
		}},
		"one that names what is not": {web("{type: Recreate}", "{}") + "\n---\n" + canary, nil},
		"a container that waits for a Job": {
			web("{}", "{initContainers: [{args: [job, web]}]}") + "\n---\n" + ofKind("batch/v1", "Job", "{}"), []string{waits},
		},
		"one that does so by a script": {
			web("{}", "{containers: [{command: [sh, -c, kubectl wait job/web]}]}") + "\n---\n" + ofKind("batch/v1", "Job", "{}"), []string{waits},
		},
		"one that does so by its environment": {
			web("{}", "{containers: [{env: [{name: JOB, value: web}]}]}") + "\n---\n" + ofKind("batch/v1", "Job", "{}"), []string{waits},
		},
		"one that names another thing": {
			web("{}", "{containers: [{args: [webs, web-1, 1]}]}") + "\n---\n" + ofKind("batch/v1", "Job", "{}"), nil,
		},
		"one Pod of a StatefulSet": {ofKind("apps/v1", "StatefulSet", "{}"), []string{
			"StatefulSet web has one Pod, and none while that is replaced",
		}},
		"two Pods of a StatefulSet": {ofKind("apps/v1", "StatefulSet", "{replicas: 2}"), nil},
		"a DaemonSet":               {ofKind("apps/v1", "DaemonSet", "{}"), nil},
		"Pods that users delete": {ofKind("apps/v1", "DaemonSet", "{updateStrategy: {type: OnDelete}}"), []string{
			"DaemonSet web has the update strategy OnDelete: its Pods change when you delete them",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lots.Of(objects(t, tc.objects), release).Warnings); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNamesOfCopiesAreLonger: nothing but the API server bounds them.
func TestNamesOfCopiesAreLonger(t *testing.T) {
	name := strings.Repeat("c", 250)
	all := "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {a: b}}\n---\n" +
		web("{}", "{containers: [{envFrom: [{configMapRef: {name: "+name+"}}]}]}")
	want := strings.Repeat("c", 233) + "-8ba4839f-6f19aa85-0"
	if got := lots.Of(objects(t, all), release).Entries[0].Copy.GetName(); got != want || len(got) != 253 {
		t.Errorf("%s (%d bytes), want %s", got, len(got), want)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 30) + "." + strings.Repeat("b", 30)
	tests := map[string]struct {
		of   lots.Release
		name string
		want string
	}{
		"as the Release's":  {release, "shop", "shop-6f19aa85-0"},
		"one of the chart":  {release, "web", "web-6f19aa85-0"},
		"as long as may be": {release, strings.Repeat("a", 52), strings.Repeat("a", 52) + "-6f19aa85-0"},
		"one too long": {
			release, long, strings.Repeat("a", 30) + "." + strings.Repeat("b", 12) + "-fca33503-6f19aa85-0",
		},
		"one cut at a dot": {
			release, strings.Repeat("a", 42) + "." + strings.Repeat("b", 20), strings.Repeat("a", 42) + "-f745c3c7-6f19aa85-0",
		},
		"a Release of another name":         {lots.Release{App: "shop", Name: "other"}, "web", "web-8da5ffb9"},
		"a Release named as a longer one":   {lots.Release{App: "shop", Name: "shopping-1-0"}, "web", "web-f0c0e3c0"},
		"a Release of a very long suffix":   {lots.Release{App: "shop", Name: "shop-" + strings.Repeat("1", 30)}, "web", "web-c9ab95ec"},
		"a Release of a suffix with a dot":  {lots.Release{App: "shop", Name: "shop-1.0"}, "web", "web-3b57907d"},
		"a Release of the application name": {lots.Release{App: "shop", Name: "shop"}, "web", "web-0efc3f01"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := lots.Name(tc.name, lots.Suffix(tc.of), lots.MaxLabel)
			if got != tc.want || len(got) > lots.MaxLabel {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestTooManyWorkloadsInPlaceAreRefused(t *testing.T) {
	set := func(i int) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent-%d}}", i)
	}
	all := set(0)
	for i := 1; i < lots.MaxInPlace; i++ {
		all += "\n---\n" + set(i)
	}
	if refused := lots.Of(objects(t, all), release).Refused; len(refused) > 0 {
		t.Errorf("%d of them: %q", lots.MaxInPlace, refused)
	}
	want := []string{"101 workloads of the chart change in place, and 100 at most can: make several charts of it"}
	if diff := cmp.Diff(want, lots.Of(objects(t, all+"\n---\n"+set(lots.MaxInPlace)), release).Refused); diff != "" {
		t.Errorf("one more (-want +got)\n%s", diff)
	}
}
