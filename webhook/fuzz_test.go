// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook"
	"shipper.dev/shipper/webhook/protected"
)

// quick knows every chart, in one version.
type quick struct{}

func (quick) Verifiable(context.Context, string, shipper.Chart, string) error { return nil }

func (quick) Resolve(_ context.Context, _ string, want shipper.Chart) (repository.Resolution, error) {
	if want.Name == "" {
		return repository.Resolution{}, &chart.Error{Message: "no such chart", Cause: chart.ErrNoChart}
	}
	return repository.Resolution{Version: "0.0.1", Digest: strings.Repeat("0", 64)}, nil
}

func (quick) Allows(repoURL string) error { return (&repository.Catalog{}).Allows(repoURL) }

func (quick) Refresh(context.Context, string, shipper.Chart) error { return errors.New("not now") }

func (quick) Judge(context.Context, *shipper.Release, render.Cluster) ([]string, error) {
	return nil, nil
}

func (quick) Lots(context.Context, *shipper.Release, render.Cluster) (lots.Table, error) {
	return lots.Table{}, nil
}

func (quick) Naming(context.Context, *shipper.Release, []render.Cluster) (shipper.ChartNaming, error) {
	return shipper.NamingByRelease, nil
}

func (quick) Replicas(context.Context, *shipper.Release, render.Cluster) (int32, error) {
	return 3, nil
}

// gateOf serves all webhooks with a few cached objects and grants no rights.
func gateOf(f *testing.F) (s served, forget func()) {
	f.Helper()
	app := ask.Application(ask.Pinned("~0.0"))
	w := ask.Know(f, ask.Grant(), app, ask.Release(app, nil), ask.Block("elsewhere/demo"),
		&shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: shipper.ClusterSpec{Region: "local"}})
	s = served{}
	err := webhook.Setup(s, webhook.Options{
		State: w.State, Ready: func(context.Context) error { return nil }, Authz: w.Authz, Charts: quick{}, Reconciler: ask.Reconciler,
		Kinds: ask.Kinds{}, Registry: prometheus.NewRegistry(), Clock: ask.Clock(), Log: logr.Discard(),
	})
	if err != nil {
		f.Fatal(err)
	}
	return s, func() { w.Authz.Asked = nil }
}

// objects are one of each kind, by the part of the paths that names it, and how they looked before.
func objects() map[string][2]client.Object {
	app := ask.Application(ask.Pinned("~0.0"))
	rel := ask.Release(app, nil, ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, "local"))
	moved := rel.DeepCopy()
	moved.Spec.TargetStep = 1
	block := ask.Block("default/demo")
	child := metav1.ObjectMeta{
		Namespace: rel.Namespace, Name: rel.Name, Labels: rel.Labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID,
		}},
	}
	return map[string][2]client.Object{
		"application":        {ask.Application(ask.Pinned("~0.0"), ask.Version("~0.1")), app},
		"release":            {moved, rel},
		"rolloutblock":       {block, block},
		"cluster":            {&shipper.Cluster{Spec: shipper.ClusterSpec{APIMaster: "https://a", Region: "local"}}, &shipper.Cluster{}},
		"installationtarget": {&shipper.InstallationTarget{ObjectMeta: child}, &shipper.InstallationTarget{ObjectMeta: child}},
		"capacitytarget":     {&shipper.CapacityTarget{ObjectMeta: child}, &shipper.CapacityTarget{ObjectMeta: child}},
		"traffictarget":      {&shipper.TrafficTarget{ObjectMeta: child}, &shipper.TrafficTarget{ObjectMeta: child}},
		"application-of-resources": {
			ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "Secret", Name: "a"}), ask.Content("a")),
			ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap"}), ask.SelectedBy("dev")),
		},
		"envelope": {&shipper.Envelope{Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, nil,
		}}}, &shipper.Envelope{}},
		"notification": {&shipper.Notification{Spec: shipper.NotificationSpec{
			To: shipper.NotificationReceiver{SecretName: "slack"}, Body: "event.message",
		}}, &shipper.Notification{}},
	}
}

// FuzzReview sends any request to every path: each gets an answer with its own UID,
// and every patch applies.
func FuzzReview(f *testing.F) {
	s, forget := gateOf(f)
	for _, pair := range objects() {
		for _, req := range []*admissionv1.AdmissionRequest{
			&ask.Create("dev", pair[0]).AdmissionRequest, &ask.Update("dev", pair[0], pair[1]).AdmissionRequest,
			&ask.Update(ask.Reconciler, pair[0], pair[1]).AdmissionRequest, &ask.Delete("dev", pair[1]).AdmissionRequest,
		} {
			f.Add(review(f, *req))
		}
	}
	paths := slices.Sorted(maps.Keys(s))
	f.Fuzz(func(t *testing.T, body []byte) {
		forget()
		var asked admissionv1.AdmissionReview
		understood := kjson.Unmarshal(body, &asked) == nil && asked.Request != nil
		for _, path := range paths {
			_, got := post(t, s, path, body)
			if got == nil {
				t.Fatalf("%s does not answer", path)
			}
			if !got.Allowed && (got.Result == nil || got.Result.Message == "" || len(got.Patch) > 0) {
				t.Fatalf("%s refuses without saying why, or patches all the same: %+v", path, got)
			}
			if !understood {
				continue
			}
			if got.Allowed && got.UID != asked.Request.UID {
				t.Fatalf("%s answers %q to %q", path, got.UID, asked.Request.UID)
			}
			var o struct {
				Metadata map[string]any `json:"metadata"`
			}
			if kjson.Unmarshal(asked.Request.Object.Raw, &o) == nil && o.Metadata != nil { // API servers send none without
				patched(t, asked.Request.Object.Raw, got.Patch)
			}
		}
	})
}

// patched is object after patch.
func patched(t *testing.T, object, patch []byte) []byte {
	t.Helper()
	if len(patch) == 0 {
		return object
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s is no patch: %v", patch, err)
	}
	out, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("%s does not patch %s: %v", patch, object, err)
	}
	return out
}

// FuzzForgery sends any write of a user without rights over an Application, a Release and a target, as the API
// server does: mutated, with the old status restored, and validated. An admitted write has not changed
// protected metadata; the mover or holder of a Release is this user.
func FuzzForgery(f *testing.F) {
	s, forget := gateOf(f)
	all := objects()
	kinds := map[string]protected.Metadata{
		"application": protected.Observed, "release": protected.Stamped,
		"capacitytarget": {Labels: protected.Release.Labels, Annotations: []string{shipper.ReleaseChartDigestAnnotation}},
	}
	for kind := range kinds {
		for _, forge := range []func(map[string]any){
			func(map[string]any) {},
			func(o map[string]any) {
				o["metadata"].(map[string]any)["labels"] = map[string]any{shipper.AppLabel: "other"}
			},
			func(o map[string]any) { delete(o["metadata"].(map[string]any), "annotations") },
			func(o map[string]any) { // with a status of the wrong type, which is gone when it is judged
				delete(o["metadata"].(map[string]any), "annotations")
				o["status"] = map[string]any{"conditions": 7}
			},
		} {
			text, err := json.Marshal(all[kind][0])
			if err != nil {
				f.Fatal(err)
			}
			o := map[string]any{}
			if err := json.Unmarshal(text, &o); err != nil {
				f.Fatal(err)
			}
			forge(o)
			if text, err = json.Marshal(o); err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		forget()
		var fields map[string]any
		if err := kjson.Unmarshal(object, &fields); err != nil {
			return
		}
		if _, there := fields["metadata"].(map[string]any); !there { // API servers send none without
			return
		}
		object, err := json.Marshal(fields) // as the API server sends it: nothing twice
		if err != nil {
			return
		}
		for kind, state := range kinds {
			old := all[kind][1]
			stored, passed := write(t, s, kind, object, old)
			if !passed {
				continue
			}
			want, got := only(state, old.GetLabels(), old.GetAnnotations()), only(state, stored.Labels, stored.Annotations)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("what %s is after %s (-want +got):\n%s", kind, object, diff)
			}
			if m := stamp.Moved(&shipper.Release{ObjectMeta: stored.ObjectMeta}); m.Count > 0 && (m.By != "dev" || m.Why != "") {
				t.Fatalf("%s notes a move by another: %+v", object, m)
			}
			if by, there := stored.Annotations[shipper.ReleaseHeldByAnnotation]; there && by != "dev" {
				t.Fatalf("%s notes a hold by %q", object, by)
			}
		}
	})
}

// write asks whether a developer may replace old, an object of kind, by now, and returns what would be stored.
func write(t *testing.T, s served, kind string, now []byte, old client.Object) (stored metav1.PartialObjectMetadata, passed bool) {
	t.Helper()
	req := ask.Update("dev", old, old).AdmissionRequest
	req.Object.Raw = now
	if mutate := "/mutate-" + kind; s[mutate] != nil {
		_, response := post(t, s, mutate, review(t, req))
		if !response.Allowed {
			return stored, false
		}
		req.Object.Raw = patched(t, now, response.Patch)
	}
	var fields, before map[string]json.RawMessage
	if json.Unmarshal(req.Object.Raw, &fields) != nil || json.Unmarshal(req.OldObject.Raw, &before) != nil {
		return stored, false
	}
	fields["status"] = before["status"]
	var err error
	if req.Object.Raw, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	_, response := post(t, s, "/validate-"+kind, review(t, req))
	// What metadata of wrong types would be stored as, the API server does not get to say: it refuses it.
	return stored, response.Allowed && kjson.Unmarshal(req.Object.Raw, &stored) == nil
}

// only is what of labels and annotations belongs to state.
func only(state protected.Metadata, labels, annotations map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range state.Labels {
		if v, there := labels[key]; there {
			out[key] = v
		}
	}
	for _, key := range state.Annotations {
		if v, there := annotations[key]; there {
			out[key] = v
		}
	}
	return out
}
