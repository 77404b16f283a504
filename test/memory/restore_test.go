// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

func TestRestorePutsBackWhatThereWas(t *testing.T) {
	gone := map[string]bool{}
	o := Options{Noted: func(kind string, u *unstructured.Unstructured, is bool) {
		if kind == "/configmaps" {
			gone[u.GetName()] = is
		}
	}}
	in(t, o, func(t *testing.T, s *Server, c *kubernetes.Clientset) {
		maps := c.CoreV1().ConfigMaps("shop")
		of := func(name, value string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": value}}
		}
		kept, err := maps.Create(t.Context(), of("kept", "old"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		then := s.Version()
		if _, err := maps.Update(t.Context(), of("kept", "new"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Create(t.Context(), of("later", "new"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}

		if err := s.Restore(then); err != nil || s.Version() != then {
			t.Fatalf("version %d, want %d (error: %v)", s.Version(), then, err)
		}
		now, err := maps.Get(t.Context(), "kept", metav1.GetOptions{})
		if err != nil || now.Data["is"] != "old" || now.ResourceVersion != kept.ResourceVersion || now.UID != kept.UID {
			t.Errorf("got %+v, want %+v (error: %v)", now, kept, err)
		}
		if _, err := maps.Get(t.Context(), "later", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("what was created later: %v", err)
		}
		if !gone["later"] || gone["kept"] {
			t.Errorf("noted as gone: %v", gone)
		}
		if _, err := maps.Create(t.Context(), of("later", "again"), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if err := s.Restore(then + 100); err == nil {
			t.Error("a version that was never there is restored")
		}
	})
}
