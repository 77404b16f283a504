// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

func TestUnmanagedKindsHaveNoManagedFields(t *testing.T) {
	for _, unmanaged := range []bool{false, true} {
		kinds := Application()
		for i := range kinds {
			kinds[i].Unmanaged = unmanaged
		}
		in(t, Options{Kinds: kinds}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
			maps := c.CoreV1().ConfigMaps("shop")
			content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"is": "old"}}
			made, err := maps.Create(t.Context(), content, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Data["is"] = "new"
			changed, err := maps.Update(t.Context(), made, metav1.UpdateOptions{})
			if err != nil || changed.Data["is"] != "new" {
				t.Fatalf("got %+v (error: %v)", changed, err)
			}
			_, err = maps.Apply(t.Context(), corev1ac.ConfigMap("b", "shop"), metav1.ApplyOptions{FieldManager: "test"})
			if got := []bool{len(changed.ManagedFields) == 0, err != nil}; !cmp.Equal(got, []bool{unmanaged, unmanaged}) {
				t.Errorf("unmanaged %t: managedFields %v, apply: %v", unmanaged, changed.ManagedFields, err)
			}
		})
	}
}

func TestOnlyReviewedWritesArePassedOn(t *testing.T) {
	var seen []string
	note := func(r *Review) error {
		seen = append(seen, r.Operation+" "+r.Kind.Resource)
		return nil
	}
	of := func(k Kind, subresource string) bool { return k.Resource == "configmaps" && subresource == "" }
	in(t, Options{Mutate: note, Review: note, Reviewed: of}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		named := metav1.ObjectMeta{Name: "a"}
		if _, err := c.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().Secrets("shop").Create(t.Context(), &corev1.Secret{ObjectMeta: named}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"CREATE configmaps", "CREATE configmaps"}, seen); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
