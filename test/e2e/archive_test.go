// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestAnArchiveInPlaceOfARepository rolls out an archive that the Application contains, then replaces it by another.
func TestAnArchiveInPlaceOfARepository(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		var encoded, digests [2]string
		for i, version := range []string{"0.0.1", "0.0.2"} {
			archive, err := charts.Get("test-nginx", version)
			s.Must("packing a chart", err)
			encoded[i], digests[i] = base64.StdEncoding.EncodeToString(archive.Bytes), archive.Digest
		}
		app := s.application("", 1, allIn)
		app.Spec.Template.Chart = shipper.Chart{Archive: encoded[0]}
		s.applies(app)
		first := s.Release(0)
		s.Completes(first)
		s.readyPods(first, 1)
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Archive = encoded[1] })
		second := s.Release(1)
		s.Completes(second)
		s.readyPods(second, 1)
		s.readyPods(first, 0)
		for i, name := range []string{first, second} {
			rel, err := s.Get(name)
			s.Must("reading a release", err)
			it := &shipper.InstallationTarget{}
			s.Must("reading an installation target", world.Management.Get(s.Ctx, client.ObjectKeyFromObject(rel), it))
			kept := &shipper.ChartSnapshot{}
			key := client.ObjectKey{Namespace: s.Namespace, Name: shipper.ChartSnapshotName(digests[i])}
			s.Eventually("the snapshot of "+name, "there", func() (string, error) { // the rollout does not wait for it
				return "there", world.Management.Get(s.Ctx, key, kept)
			})
			named := shipper.Chart{Name: "test-nginx", Version: []string{"0.0.1", "0.0.2"}[i]}
			whole := named
			whole.Archive = encoded[i]
			if diff := cmp.Diff([]shipper.Chart{whole, named, named}, []shipper.Chart{
				rel.Spec.Environment.Chart, *it.Spec.Chart, kept.Spec.Chart,
			}); diff != "" {
				t.Errorf("the chart of %s, of its installation and of its snapshot (-want +got)\n%s", name, diff)
			}
		}
	})
}
