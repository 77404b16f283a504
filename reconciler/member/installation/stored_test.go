// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatIsStoredIsReadAsItWas(t *testing.T) {
	objects := []unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(3), "weight": 0.5, "paused": false, "nothing": nil, "list": []any{"a", int64(1) << 60}},
	}}, {Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": "migrate", "annotations": map[string]any{"helm.sh/hook": "pre-install"}},
	}}}
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
