// SPDX-License-Identifier: Apache-2.0

package chart

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

// left is what shipperctl leaves to the user who deploys Shipper.
var left = map[string]bool{"Deployment": true, "PodDisruptionBudget": true, "PriorityClass": true}

// read reads the objects that kubectl prints, those of lists too.
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

// stored is what two ways of installing have to agree on, by kind, namespace and name. Versions count writes, Kubernetes writes statuses at
// any time, and a failurePolicy of Fail is set later by `clusters join`.
func stored(objects []*unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, o := range objects {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		o.SetGeneration(0)
		delete(o.Object, "status")
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
// overlay says, in a cluster without other writers.
func TestSettingUpInstallsWhatTheOverlayInstalls(t *testing.T) {
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := kubectlOn(t.Context(), fresh, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	setUp(t, fresh)
	var text strings.Builder
	for key, o := range kustomized(t, "resources: [../default]\n") {
		u := unstructured.Unstructured{Object: o}
		if left[u.GetKind()] {
			if out := kubectl("get", u.GetKind(), u.GetName(), "-n", system, "--ignore-not-found", "-o", "name"); out != "" {
				t.Errorf("%s is there, and who deploys Shipper is another", key)
			}
			continue
		}
		one, err := sigsyaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(one))
	}
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := stored(read(t, kubectl("get", "-f", file, "-o", "json")))
	want := stored(read(t, kubectl("replace", "--dry-run=server", "-f", file, "-o", "json")))
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

// appliesAgain applies an overlay over itself: there is no warning, and the Deployment is available.
func (i *installation) appliesAgain(overlay string) {
	i.Helper()
	out := i.kubectl("apply", "--server-side", "--force-conflicts", "-k", filepath.Join(manifests, "overlays", overlay))
	if strings.Contains(out, "Warning:") {
		i.Errorf("there are warnings:\n%s", out)
	}
	i.kubectl("rollout", "status", "deployment/shipper", "-n", system, "--timeout=60s")
	i.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", filepath.Join(manifests, "network", "policy.yaml"))
}
