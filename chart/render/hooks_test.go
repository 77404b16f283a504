// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/chart/render"
)

func TestHooksAreInHelmsOrder(t *testing.T) {
	const hooks = `{{ range list "z,-5,Job" "b,5,Job" "a,5,Pod" "c,,ConfigMap" "d,many,Job" }}{{ $h := splitList "," . }}
---
apiVersion: {{ if eq (index $h 2) "Job" }}batch/v1{{ else }}v1{{ end }}
kind: {{ index $h 2 }}
metadata:
  name: {{ index $h 0 }}
  labels: {shipper-app: forged}
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: {{ index $h 1 | quote }}}
spec: {ttlSecondsAfterFinished: 0}
{{ end }}`
	m := renderTarget(t, sample(t, map[string]string{"templates/hooks.yaml": hooks}), nil)
	if n := len(m.Objects); n != 2 {
		t.Errorf("%d objects are installed, want the Deployment and the Service alone", n)
	}
	got, err := m.Hooks(target)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range got {
		names = append(names, o.GetKind()+" "+o.GetName())
		want := map[string]string{"shipper-app": target.App, "shipper-owned-by": target.ReleaseName}
		if diff := cmp.Diff(want, o.GetLabels()); diff != "" {
			t.Errorf("labels of %s: -want +got:\n%s", o.GetName(), diff)
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished"); found && o.GetKind() == "Job" {
			t.Errorf("%s may go before its end was seen", o.GetName())
		}
	}
	want := []string{"Job z", "ConfigMap c", "Job d", "Pod a", "Job b"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHookOf(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		want        *render.Hook
	}{
		"an object without annotations": {nil, nil},
		"Helm 2's crd-install": {
			map[string]string{"helm.sh/hook": "crd-install"}, nil,
		},
		"a hook that says nothing more": {
			map[string]string{"helm.sh/hook": "pre-install"},
			&render.Hook{
				Events:  []release.HookEvent{release.HookPreInstall},
				Delete:  []release.HookDeletePolicy{release.HookBeforeHookCreation},
				Timeout: 5 * time.Minute,
			},
		},
		"a hook that says all": {
			map[string]string{
				"helm.sh/hook": "post-install, Post-Upgrade,test-success,test", "helm.sh/hook-weight": "-7",
				"helm.sh/hook-delete-policy": "hook-succeeded, Hook-Failed", "shipper.booking.com/hook-timeout": "90s",
			},
			&render.Hook{
				Events:  []release.HookEvent{release.HookPostInstall, release.HookPostUpgrade, release.HookTest},
				Weight:  -7,
				Delete:  []release.HookDeletePolicy{release.HookSucceeded, release.HookFailed},
				Timeout: 90 * time.Second,
			},
		},
		"Helm 2's test that is to fail never runs": {
			map[string]string{"helm.sh/hook": "test-failure", "helm.sh/hook-weight": "heavy"},
			&render.Hook{Delete: []release.HookDeletePolicy{release.HookBeforeHookCreation}, Timeout: 5 * time.Minute},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			o.SetAnnotations(tc.annotations)
			got, err := render.HookOf(o)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}
