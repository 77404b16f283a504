// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
)

// panics is a Renderer of a chart that nobody has met yet.
type panics struct{}

func (panics) Render(context.Context, Source, chart.Target) ([]unstructured.Unstructured, error) {
	panic("nobody knows")
}

// TestARenderingThatPanicsIsBroken has one panic where nobody waits for it: that would end the process.
func TestARenderingThatPanicsIsBroken(t *testing.T) {
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web-1"}}
	q := workqueue.NewTypedRateLimitingQueue(fleet.RateLimiter())
	defer q.ShutDown()
	a := newBackgroundRenderer()
	if err := a.source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	renders := newRendering(t.Context(), panics{}, sources{})
	renders.get = func(fingerprint string, render func() ([]wanted, error)) ([]wanted, error) {
		return a.get(t.Context(), req, fingerprint, render)
	}
	objects, err := renders.manifest(Source{}, chart.Target{}, "a")
	if reason, remedy := fleet.Classify(err); objects != nil || reason != shipper.ChartError || remedy != fleet.Wait {
		t.Errorf("got %v and %s, %v: %v", objects, reason, remedy, err)
	}
}
