// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
)

func TestAWriteIsReviewedAgainWhenItsObjectChanges(t *testing.T) {
	kinds, err := Management()
	if err != nil {
		t.Fatal(err)
	}
	var s *Server
	var seen []string
	s = New("http://memory", Options{
		Kinds: kinds,
		Mutate: func(r *Review) error {
			if r.Operation != "DELETE" {
				return unstructured.SetNestedField(r.Object.Object, "yes", "data", "mutated")
			}
			return nil
		},
		Review: func(r *Review) error {
			seen = append(seen, r.Operation+" "+r.Name+" "+r.User.GetName())
			if r.Operation == "UPDATE" && len(seen) == 2 {
				return s.Edit("", "configmaps", "shop", "a", func(u *unstructured.Unstructured) error {
					return unstructured.SetNestedField(u.Object, "1", "data", "meanwhile")
				})
			}
			if r.Operation == "DELETE" {
				return apierrors.NewForbidden(r.Kind.resource().GroupResource(), r.Name, errors.New("no"))
			}
			return nil
		},
	})
	if err := s.Create("", "namespaces", newNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, s).CoreV1().ConfigMaps("shop")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "1"}}
	if _, err := c.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"data":{"b":"1"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1", "meanwhile": "1", "mutated": "yes"}, got.Data); diff != "" {
		t.Error("-want +got:\n" + diff)
	}
	if err := c.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a refused deletion: %v", err)
	}
	want := []string{"CREATE a system:admin", "UPDATE a system:admin", "UPDATE a system:admin", "DELETE a system:admin"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error("reviews: -want +got:\n" + diff)
	}
}

func TestEnterKeepsAWriteOut(t *testing.T) {
	var left []bool
	dead := false
	in(t, Options{Enter: func(*http.Request) (func(bool), error) {
		if dead {
			return nil, errors.New("dead")
		}
		return func(done bool) { left = append(left, done) }, nil
	}}, func(t *testing.T, s *Server, c *kubernetes.Clientset) {
		maps := c.CoreV1().ConfigMaps("shop")
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		dead = true
		if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "dead") {
			t.Errorf("a write of a dead process: %v", err)
		}
		if diff := cmp.Diff([]bool{true}, left); diff != "" || len(s.All("/configmaps")) != 1 {
			t.Error("-want +got:\n" + diff)
		}
	})
}

func TestAuthorizeDecides(t *testing.T) {
	allow := func(_ context.Context, a authorizer.Attributes) (bool, string) {
		return a.GetUser().GetName() != "ann" || a.GetVerb() != "create", "ann only reads"
	}
	in(t, Options{Authorize: allow}, func(t *testing.T, s *Server, _ *kubernetes.Clientset) {
		send := func(path, body string) (int, string) {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Impersonate-User", "ann")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		if code, body := send("/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"a"}}`); code != http.StatusForbidden {
			t.Errorf("%d %s", code, body)
		}
		_, body := send("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			`{"spec":{"resourceAttributes":{"verb":"create","resource":"pods"}}}`)
		if !strings.Contains(body, `"allowed":false`) {
			t.Error(body)
		}
	})
}

// BenchmarkApply measures an apply that changes a custom resource.
func BenchmarkApply(b *testing.B) {
	kinds, err := Management()
	if err != nil {
		b.Fatal(err)
	}
	s := New("http://memory", Options{Kinds: kinds})
	_ = s.Create("", "namespaces", newNamespace("shop"))
	send := func(method, path, kind, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code >= http.StatusBadRequest {
			out, _ := io.ReadAll(w.Body)
			b.Fatal(string(out))
		}
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, []byte(environment))
	path := "/apis/shipper.booking.com/v1alpha1/namespaces/shop/applications/app"
	for i := 0; b.Loop(); i++ {
		send(http.MethodPatch, path+"?fieldManager=one", "application/apply-patch+yaml",
			fmt.Sprintf(`%s,"labels":{"n":"%d"}},"spec":{"template":%s}}`, head("Application", "app"), i, compact.String()))
	}
}
