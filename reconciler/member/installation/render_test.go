// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/retry"
)

// panics is a Renderer that panics.
type panics struct{}

func (panics) Render(context.Context, Source, render.Target) ([]unstructured.Unstructured, error) {
	panic("a mistake")
}

func TestARenderingThatPanicsIsBroken(t *testing.T) {
	objects, err := newRendering(t.Context(), panics{}, sources{}).render(Source{}, render.Target{})
	if reason, remedy := retry.ClassifyInCluster(err); objects != nil || reason != shipper.ChartError || remedy != retry.Wait {
		t.Errorf("got %v and %s, %v: %v", objects, reason, remedy, err)
	}
}
