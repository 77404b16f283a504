// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// outageWarnings are the Warnings about a Service without endpoints, by the kind and name they are about.
func (s *fixture) outageWarnings() []string {
	s.Helper()
	var list eventsv1.EventList
	s.must(s.management.List(s.ctx, &list, client.InNamespace(s.namespace)))
	var out []string
	for _, e := range list.Items {
		if e.Reason == shipper.ServiceWithoutEndpoints {
			out = append(out, fmt.Sprintf("%s %s %s: %s", e.Type, e.Regarding.Kind, e.Regarding.Name, e.Note))
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// TestAServiceThatLosesItsEndpointsIsReported breaks the image of a Release that serves alone, by hand and in one of two clusters.
func TestAServiceThatLosesItsEndpointsIsReported(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.policy("")
	app := &shipper.Application{}
	s.must(s.management.Get(s.ctx, s.key(s.app), app))
	s.must(s.management.Create(s.ctx, &shipper.Release{
		ObjectMeta: s.meta("web-1"), Spec: shipper.ReleaseSpec{Environment: app.Spec.Template},
	}))
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	s.scale("web-1", 100, 2, west, east)
	s.scaled("web-1")
	s.weigh("web-1", 100, west, east)
	s.weighed("web-1")
	if got := s.outageWarnings(); got != nil {
		t.Errorf("the first rollout is reported: %q", got)
	}

	deployment := s.deployment(west, "web-1")
	image := deployment.Spec.Template.Spec.Containers[0].Image
	name := deployment.Spec.Template.Spec.Containers[0].Name
	s.must(world.clusters[west].Patch(s.ctx, deployment, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`,
		name, strings.SplitN(image, ":", 2)[0]+":broken"))))
	message := s.notWeighed("web-1", west, shipper.ServiceWithoutEndpoints)
	if want := `Service "test-nginx-prod" has no ready endpoints, though this release is to serve: `; !strings.HasPrefix(message, want) {
		t.Errorf("the condition says %q, want %q and why", message, want)
	}
	s.soon("the Warnings", func() string {
		var about []string
		for _, text := range s.outageWarnings() {
			subject, note, _ := strings.Cut(text, ": ")
			note = strings.Replace(note, `, release "web-1"`, "", 1) // which a TrafficTarget is of
			if !strings.HasPrefix(note, `cluster "west": Service "test-nginx-prod" has no ready endpoints`) {
				return text
			}
			about = append(about, subject)
		}
		return gocmp.Diff([]string{"Warning Application web", "Warning Release web-1", "Warning TrafficTarget web-1"}, slices.Compact(about))
	})
	tt := &shipper.TrafficTarget{}
	s.must(s.management.Get(s.ctx, s.key("web-1"), tt))
	for _, c := range tt.Status.Clusters {
		ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
		if c.Name == east && ready.Status != corev1.ConditionTrue {
			t.Errorf("east, which serves, is %+v", ready)
		}
	}

	s.must(world.clusters[west].Patch(s.ctx, deployment, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, name, image))))
	s.weighed("web-1")
}
