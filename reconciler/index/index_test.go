// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestEntriesAreOfOneNamespace(t *testing.T) {
	names := func(o client.Object) []string { return []string{o.GetName(), o.GetLabels()["app"]} }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1", Labels: map[string]string{"app": "web"}}}
	got, err := entries(names)(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team/web-1", "team/web"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := entries(names)("no object"); err == nil {
		t.Error("what is no object has entries")
	}
}
