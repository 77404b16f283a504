// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fence"
	"shipper.dev/shipper/reconciler/retry"
)

// TestARefusedWriteIsNoSignOfTheCluster has the term refuse a write, which says nothing of the cluster that it was for.
func TestARefusedWriteIsNoSignOfTheCluster(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	config.Wrap(fence.New(clock.RealClock{}, 13*time.Second).Wrap)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
	if reason, remedy := retry.ClassifyInCluster(err); reason != shipper.InProgress || remedy != retry.Retry {
		t.Errorf("the reason is %s of %v, and the remedy %v", reason, err, remedy)
	}
}
