// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
)

// TestTheFingerprintOfATargetIsThatOfEarlierVersions: with another one, an upgrade of Shipper would render again all that is installed.
func TestTheFingerprintOfATargetIsThatOfEarlierVersions(t *testing.T) {
	s := Source{Chart: shipper.Chart{Name: "web", Version: "0.0.1"}, Digest: "cafe", Values: &shipper.ChartValues{"a": int64(1)}}
	got, err := s.fingerprint(render.Target{
		ReleaseName: "web-1", Namespace: "shop", App: "web", KubeVersion: "v1.37.1", APIVersions: []string{"v1"},
		Labels: map[string]string{shipper.AppLabel: "web"}, Lookups: &render.Lookups{}, ChartLabels: true,
	})
	if want := "aa99768eb22eb87a2e8b163a4b9eece033b2ff443a2a5b5deba43a15232f3f96"; got != want || err != nil {
		t.Errorf("it is %s, %v, and was %s", got, err, want)
	}
}

// TestTheFingerprintDiffersByOverrides: an object would keep what an override that is gone has changed.
func TestTheFingerprintDiffersByOverrides(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range [][]override.Change{nil, {{Override: "a", Delete: true}}, {{Override: "b", Delete: true}}} {
		got, err := Source{Overrides: of}.fingerprint(render.Target{})
		if err != nil || seen[got] {
			t.Errorf("%v: %s, %v", of, got, err)
		}
		seen[got] = true
	}
}

// looks is a Renderer of a chart that looks up a Secret, and quotes it.
type looks struct{ fails bool }

func (l looks) Render(ctx context.Context, _ Source, _ render.Target, find Find) (render.Manifest, error) {
	found, err := find(ctx, render.Query{APIVersion: "v1", Kind: "Secret", Name: "password"})
	if l.fails {
		return render.Manifest{}, &chart.Error{Reason: shipper.ChartError, Message: found["data"].(string), Public: "it does not render"}
	}
	return render.Again([]unstructured.Unstructured{{Object: map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "taken"}, "data": found["data"],
	}}}, nil), err
}

func TestWhatAChartHasLookedUpIsNotQuoted(t *testing.T) {
	finds := func(context.Context, render.Query) (map[string]any, error) {
		return map[string]any{"data": "hunter2"}, nil
	}
	r, of := &rendering{renderer: looks{}}, render.Target{Naming: shipper.NamingByApplication}
	one, err := r.render(t.Context(), Source{}, of, finds)
	if err != nil || !r.sources.private() || r.sources.secret() {
		t.Errorf("private %t, secret %t, %v", r.sources.private(), r.sources.secret(), err)
	}
	other, err := r.render(t.Context(), Source{}, of, finds)
	if err != nil || one[0].digest == other[0].digest {
		t.Errorf("a password can be tried against the digest %s: %v", one[0].digest, err)
	}
	if said := r.sources.discreet(errors.New("invalid value: hunter2")).Error(); strings.Contains(said, "hunter2") {
		t.Errorf("an error says %q", said)
	}
	if _, err := (&rendering{renderer: looks{fails: true}}).render(t.Context(), Source{}, render.Target{}, finds); err == nil ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the rendering says %v", err)
	}
}

func TestWhatIsStoredIsReadAsItWas(t *testing.T) {
	spec := map[string]any{"replicas": int64(3), "weight": 0.5, "paused": false, "nothing": nil, "list": []any{"a", int64(1) << 60}}
	deployment := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": spec, "added": "by Shipper",
	}}
	hook := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "migrate", "annotations": map[string]any{"helm.sh/hook": "pre-install"}},
	}}
	given := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "given"}, "spec": spec,
	}}
	objects := []render.Prepared{{Object: deployment, Given: given}, {Object: deployment}, {Object: hook, Given: &hook}}
	all, err := want(objects)
	if err != nil {
		t.Fatal(err)
	}
	all[0].digest = "of a key that nobody knows"
	packed, err := pack(all)
	if err != nil {
		t.Fatal(err)
	}
	read, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, read, cmp.AllowUnexported(wanted{})); diff != "" {
		t.Errorf("-stored +read:\n%s", diff)
	}
	for _, broken := range [][]byte{nil, []byte("x"), packed[:len(packed)/2]} {
		if _, err := unpack(broken); err == nil {
			t.Errorf("%d bytes of %d are read", len(broken), len(packed))
		}
	}
}

// TestWhatCannotBeReadIsNotStored: JSON has some characters as six bytes, so it can be larger than what templates may print.
func TestWhatCannotBeReadIsNotStored(t *testing.T) {
	for megabytes, stores := range map[int]bool{10: true, 11: false} {
		all, err := want([]render.Prepared{{Object: unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("<", megabytes<<20)},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		packed, err := pack(all)
		if (err == nil) != stores {
			t.Errorf("%d MiB: %v", megabytes, err)
		}
		if err != nil {
			continue
		}
		if _, err := unpack(packed); err != nil {
			t.Errorf("%d MiB are stored, and cannot be read: %v", megabytes, err)
		}
	}
}

// TestWhatCouldNeverBeInstalledIsRenderedAgain: an earlier version of Shipper has stored what server-side apply refuses.
func TestWhatCouldNeverBeInstalledIsRenderedAgain(t *testing.T) {
	pod := func(names ...any) wanted {
		var env []any
		for _, name := range names {
			env = append(env, map[string]any{"name": name})
		}
		return wanted{content: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "c", "env": env}}},
		}}}
	}
	hook := pod("A", "A")
	hook.hook = &render.Hook{}
	for sentence, tc := range map[string]struct {
		stored wanted
		want   bool
	}{
		"variables of two names": {pod("A", "B"), true},
		"a variable twice":       {pod("A", "A"), false},
		"the same in a hook":     {hook, true},
	} {
		if got := (&storedRendering{objects: []wanted{tc.stored}}).applicable(); got != tc.want {
			t.Errorf("%s: %t", sentence, got)
		}
	}
}
