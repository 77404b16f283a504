// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestWhatIsPlacedAndRemovedNeedsTheRightsOfTheRecordedUser asks for what was selected before, also of a kind that is gone, and for what an
// Envelope holds for other namespaces.
func TestWhatIsPlacedAndRemovedNeedsTheRightsOfTheRecordedUser(t *testing.T) {
	c, app := newCluster(t), web()
	before := &shipper.Resources{Select: []shipper.ResourceSelector{
		{Kind: "ConfigMap", Name: "a", Namespace: "payments"}, {Group: "example.com", Kind: "Policy", Name: "b"},
	}}
	object := func(apiVersion, kind, namespace, name string) unstructured.Unstructured {
		var o unstructured.Unstructured
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	content := []unstructured.Unstructured{
		object("v1", "ConfigMap", "work", "own"), object("v1", "ConfigMap", "vault", "x"), object("example.com/v1", "Guard", "", "g"),
	}
	selected := []*shipper.Resources{app.Spec.Template.Resources, nil, before}
	recorded, err := c.source.Permit(t.Context(), app, selected, content)
	if err != nil {
		t.Fatal(err)
	}
	if got := rights.FormatRecord(recorded); got != "namespaces/vault,guards.example.com/g" {
		t.Errorf("recorded %q", got)
	}
	slices.Sort(c.asked)
	want := []string{
		"ann list configmaps work/", "ann place guards /g", "ann place namespaces /payments", "ann place namespaces /vault",
		"ann place policies /b",
	}
	if diff := cmp.Diff(want, c.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	c.denied, c.asked = []string{"ann"}, nil
	twice := []*shipper.Resources{app.Spec.Template.Resources, app.Spec.Template.Resources}
	if _, err := c.source.Permit(t.Context(), app, twice, nil); err == nil || strings.Count(err.Error(), "may not list all configmaps") != 1 {
		t.Errorf("of the same selectors twice it says %v", err)
	}
	_, err = c.source.Permit(t.Context(), app, nil, content)
	p, ok := errors.AsType[*Problem](err)
	const lacks = `the content: user "ann", who chose the resources of Application work/web, may not place namespaces "vault"`
	if !ok || p.Reason != shipper.SelectionNotAllowed || p.Recheck() != recheck || !strings.HasPrefix(p.Message, lacks) {
		t.Errorf("without the right it is %+v", p)
	}
}
