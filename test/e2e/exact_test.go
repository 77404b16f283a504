// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestOtherBytesUnderAVersionAreRefused publishes another archive under a version twice: between the admission of a Release
// and its rollout, and before a rollback to that Release.
func TestOtherBytesUnderAVersionAreRefused(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		repository, err := charts.Start()
		s.Must("starting a repository", err)
		t.Cleanup(repository.Close)
		released := s.repacked("test-nginx", "0.0.1")
		repository.Publish(released)
		another, err := charts.Get("test-nginx", "0.0.2")
		s.Must("packing a chart", err)
		exchanged := charts.NewArchive(released.Name, released.Version, another.Bytes)

		app := s.application("0.0.1", 2, allIn)
		app.Spec.Template.Chart.RepoURL = repository.URL
		s.Must("trying", s.User.Create(s.Ctx, app.DeepCopy(), client.DryRunAll)) // from here on the webhook has the index cached
		repository.Publish(exchanged)
		s.applies(app)
		s.complains(s.App, shipper.BrokenChartSpec, "has the sha256 "+exchanged.Digest, released.Digest)

		repository.Publish(released)
		first := s.Release(0)
		s.Completes(first)

		repository.Publish(exchanged)
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		second := s.releaseAfter(first)
		s.Completes(second)
		s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App)
		back := s.releaseAfter(second)
		s.Completes(back)
		rel, err := s.Get(back)
		s.Must("reading the release", err)
		if got := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; got != released.Digest {
			t.Errorf("it is of the archive %s, want %s", got, released.Digest)
		}
	})
}

// repacked returns a chart in an archive of its own digest: Shipper caches archives by digest.
func (s *fixture) repacked(name, version string) charts.Archive {
	s.Helper()
	archive, err := charts.Get(name, version)
	s.Must("packing a chart", err)
	return s.compressed(archive, gzip.DefaultCompression, s.Namespace)
}

// compressed returns an archive of the same content, whose bytes differ by the comment.
func (s *fixture) compressed(archive charts.Archive, level int, comment string) charts.Archive {
	s.Helper()
	var out bytes.Buffer
	in, err := gzip.NewReader(bytes.NewReader(archive.Bytes))
	s.Must("unpacking a chart", err)
	w, err := gzip.NewWriterLevel(&out, level)
	s.Must("packing a chart", err)
	w.Comment = comment
	_, err = io.Copy(w, in)
	s.Must("packing a chart", errors.Join(err, w.Close()))
	return charts.NewArchive(archive.Name, archive.Version, out.Bytes())
}

// TestLargeValuesAreRolledOutAndBack has 900 KiB of values, which the Application, two Releases and their InstallationTargets hold.
func TestLargeValuesAreRolledOutAndBack(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west}, []string{westRegion})
	app := s.application("0.0.1", 1, allIn)
	(*app.Spec.Template.Values)["file"] = strings.Repeat("x", 900<<10)
	s.applies(app)
	first := s.Release(0)
	s.Completes(first)
	s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["file"] = "none" })
	second := s.Release(1)
	s.Completes(second)
	s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App)
	back := s.releaseAfter(second)
	s.Completes(back)
	s.readyPods(back, 1)
	if out, err := s.shipperctl("rollout", "history", s.App); err != nil || len(out) > 4<<10 || !strings.Contains(out, "file") {
		t.Errorf("history: %v, %d bytes", err, len(out))
	}
	s.refused("values of more than a mebibyte", s.TryEdit(func(app *shipper.Application) {
		(*app.Spec.Template.Values)["file"] = strings.Repeat("z", 1<<20)
	}), "spec.template.values", "each Release keeps a copy")
}
