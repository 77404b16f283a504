// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// left is what setting up leaves to whoever deploys Shipper.
var left = map[string]bool{"Deployment": true, "PodDisruptionBudget": true, "PriorityClass": true}

// read reads the objects that kubectl writes, those of lists too.
func read(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !o.IsList() {
			out = append(out, o)
			continue
		}
		list, err := o.ToList()
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
}

// stored is what two ways of installing have to agree on, by kind, namespace and name. Versions count writes; a failurePolicy of Fail
// is set later by `clusters join`.
func stored(objects []*unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range objects {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		o.SetGeneration(0)
		if webhooks, ok := o.Object["webhooks"].([]any); ok {
			for _, w := range webhooks {
				w.(map[string]any)["failurePolicy"] = "Ignore"
			}
		}
		out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	return out
}

// TestSettingUpInstallsWhatTheOverlayInstalls replaces, in a dry run, everything that shipperctl has written by what the default
// overlay says. It runs first, while nobody else has written.
func TestSettingUpInstallsWhatTheOverlayInstalls(t *testing.T) {
	setUp(t)
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	var text strings.Builder
	for _, o := range read(t, kubectl(t, "kustomize", filepath.Join(overlays, "default"))) {
		if left[o.GetKind()] {
			out := kubectl(t, "get", o.GetKind(), o.GetName(), "-n", "shipper-system", "--ignore-not-found", "-o", "name")
			if out != "" {
				t.Errorf("%s is there, and who deploys Shipper is another", out)
			}
			continue
		}
		one, err := sigsyaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(one))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := stored(read(t, kubectl(t, "get", "-f", file, "-o", "json")))
	want := stored(read(t, kubectl(t, "replace", "--dry-run=server", "-f", file, "-o", "json")))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("overlay and shipperctl (-overlay +shipperctl):\n" + diff)
	}
	for _, key := range []string{
		"ClusterRole /shipper:management-cluster", "ClusterRole /shipper:sre", "Role shipper-system/shipper:management-cluster",
		"ValidatingAdmissionPolicy /blocks.shipper.booking.com", "ValidatingAdmissionPolicyBinding /global-blocks.shipper.booking.com",
		"ValidatingAdmissionPolicy /secrets.shipper.booking.com", "ValidatingAdmissionPolicyBinding /secrets.shipper.booking.com",
		"ValidatingWebhookConfiguration /shipper.booking.com", "MutatingWebhookConfiguration /shipper.booking.com",
	} {
		if got[key] == nil {
			t.Errorf("%s is not compared", key)
		}
	}
}
