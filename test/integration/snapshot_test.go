// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/test/charts"
)

// released makes a Release of a chart, pinned to a digest unless that is empty.
func (s *fixture) released(name string, pinned shipper.Chart, digest string) *shipper.Release {
	s.Helper()
	rel := &shipper.Release{ObjectMeta: s.meta(name), Spec: shipper.ReleaseSpec{
		Environment: shipper.ReleaseEnvironment{
			Chart:               pinned,
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
			Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
		},
	}}
	if digest != "" {
		rel.Annotations = map[string]string{shipper.ReleaseChartDigestAnnotation: digest}
	}
	s.must(s.management.Create(s.ctx, rel))
	return rel
}

// keptFor waits until the chart of a digest is kept, whole, for these Releases and no others.
func (s *fixture) keptFor(archive charts.Archive, releases ...*shipper.Release) *shipper.ChartSnapshot {
	s.Helper()
	var want []string
	for _, rel := range releases {
		want = append(want, rel.Name+" "+string(rel.UID))
	}
	slices.Sort(want)
	var head shipper.ChartSnapshot
	s.soon("the chart is not kept", func() string {
		if err := s.management.Get(s.ctx, s.key(shipper.ChartSnapshotName(archive.Digest)), &head); err != nil {
			return err.Error()
		}
		var owners []string
		for _, owner := range head.OwnerReferences {
			owners = append(owners, owner.Name+" "+string(owner.UID))
		}
		slices.Sort(owners)
		var all []byte
		for n := int32(1); n <= head.Spec.Parts; n++ {
			var part shipper.ChartSnapshot
			key := s.key(shipper.ChartSnapshotPartName(archive.Digest, n))
			if err := s.management.Get(s.ctx, key, &part); err != nil {
				return err.Error()
			}
			all = append(all, part.Spec.Data...)
		}
		if !bytes.Equal(all, archive.Bytes) {
			return fmt.Sprintf("%d bytes are kept that are not the %d of the archive", len(all), len(archive.Bytes))
		}
		return cmp.Diff(want, owners)
	})
	return &head
}

// afresh loads a chart as a process does that has only just begun.
func (s *fixture) afresh(pinned shipper.Chart, digest string) (*render.Chart, error) {
	s.Helper()
	catalog := repository.NewCatalog(s.ctx, repository.Options{Repositories: charts.Policy(s.T)})
	return artifact.NewCharts(catalog, s.management).Load(s.ctx, s.namespace, pinned, digest)
}

// padded packs a chart with a file that does not get smaller.
func padded(t *testing.T, version string, size int) charts.Archive {
	t.Helper()
	noise := make([]byte, size)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(noise)
	archive, err := charts.PackFiles("padded", version, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: padded\nversion: " + version + "\n", "files/noise": string(noise),
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestChartsAreKeptForReleases(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo := charts.Serve(t)
	archive := padded(t, "1.0.0", 2*shipper.MaxChartPartBytes+1)
	repo.Publish(archive)
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}

	one := s.released("one", pinned, archive.Digest)
	head := s.keptFor(archive, one)
	want := shipper.ChartSnapshotSpec{Chart: pinned, Digest: archive.Digest, Bytes: int64(len(archive.Bytes)), Parts: 3}
	if diff := cmp.Diff(want, head.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	two := s.released("two", pinned, archive.Digest)
	s.keptFor(archive, one, two)

	// The repository publishes something else under the name, and then it is gone.
	repo.Publish(padded(t, "1.0.0", 1))
	if _, err := s.afresh(pinned, archive.Digest); err != nil {
		t.Errorf("what is kept is of no use: %v", err)
	}
	repo.Close()
	loaded, err := s.afresh(pinned, archive.Digest)
	if err != nil || loaded.Digest() != archive.Digest {
		t.Fatalf("what is kept is of no use: %v", err)
	}

	// A user deletes some of it, and then all.
	s.must(s.management.Delete(s.ctx, &shipper.ChartSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shipper.ChartSnapshotPartName(archive.Digest, 2)},
	}))
	s.keptFor(archive, one, two)
	s.must(s.management.Delete(s.ctx, head))
	s.soon("the old one stays", func() string {
		again := s.keptFor(archive, one, two)
		if again.UID == head.UID {
			return "it is the one that was deleted"
		}
		return ""
	})

	// It goes with the last Release.
	s.must(s.management.Delete(s.ctx, one))
	s.keptFor(archive, two)
	s.must(s.management.Delete(s.ctx, two))
	s.soon("it is kept without a use", func() string {
		var left shipper.ChartSnapshotList
		s.must(s.management.List(s.ctx, &left, client.InNamespace(s.namespace)))
		if len(left.Items) > 0 {
			return fmt.Sprintf("%d objects are left", len(left.Items))
		}
		return ""
	})
}

func TestReleasesWithoutADigestArePinnedToWhatIsKept(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo := charts.Serve(t)
	repo.ForgetDigests()
	archive, err := charts.Get("test-nginx", "0.0.1")
	s.must(err)
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}
	rel := s.released("one", pinned, "")
	s.keptFor(archive, rel)
	s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(rel), rel))
	if got := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; got != archive.Digest {
		t.Errorf("it is pinned to %q and not to %q", got, archive.Digest)
	}
}

func TestAChartThatCannotBeKeptIsTold(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo := charts.Serve(t)
	pinned := shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: repo.URL}
	exchanged := charts.NewArchive("", "", []byte("others")).Digest
	s.released("one", pinned, exchanged)
	s.soon("no event is recorded", func() string { return s.event("one", "ChartNotKept") })
	if _, err := s.afresh(pinned, exchanged); !errors.Is(err, chart.ErrDigest) {
		t.Errorf("other bytes than those of the digest are refused with %v", err)
	}
}

// TestALargeChartIsNotKept pins a Release to its chart, reports that it is not kept, and tries no more.
func TestALargeChartIsNotKept(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo := charts.Serve(t)
	repo.ForgetDigests()
	archive := padded(t, "2.0.0", 4<<20)
	repo.Publish(archive)
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}
	rel := s.released("one", pinned, "")
	s.soon("no event is recorded", func() string { return s.event("one", "ChartNotKept") })
	s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(rel), rel))
	if got := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; got != archive.Digest {
		t.Errorf("it is pinned to %q and not to %q", got, archive.Digest)
	}
	var kept shipper.ChartSnapshotList
	s.must(s.management.List(s.ctx, &kept, client.InNamespace(s.namespace)))
	if len(kept.Items) > 0 {
		t.Errorf("%d objects are kept of it", len(kept.Items))
	}
}

func TestWhatIsKeptIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo := charts.Serve(t)
	archive, err := charts.Get("test-nginx", "0.0.1")
	s.must(err)
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}
	forged := shipper.ChartSnapshotSpec{Chart: pinned, Digest: archive.Digest, Bytes: 6, Parts: 1}
	s.must(s.management.Create(s.ctx, &shipper.ChartSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shipper.ChartSnapshotName(archive.Digest)}, Spec: forged,
	}))
	forged.Part, forged.Data = 1, []byte("forged")
	s.must(s.management.Create(s.ctx, &shipper.ChartSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shipper.ChartSnapshotPartName(archive.Digest, 1)}, Spec: forged,
	}))
	loaded, err := s.afresh(pinned, archive.Digest)
	if err != nil || loaded.Digest() != archive.Digest {
		t.Errorf("the repository's own is not loaded: %v", err)
	}
	repo.Close()
	if _, err := s.afresh(pinned, archive.Digest); err == nil {
		t.Error("a foreign snapshot is loaded")
	}
}

// event is what is missing of an event about an object of the story.
func (s *fixture) event(about, reason string) string {
	s.Helper()
	var list eventsv1.EventList
	s.must(s.management.List(s.ctx, &list, client.InNamespace(s.namespace)))
	if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Name == about && e.Reason == reason
	}) {
		return "there is no event " + reason + " about " + about
	}
	return ""
}

// TestWhatIsKeptUnsignedIsNotVerified has an archive kept for a Release that asks for no signature, before one asks for it.
func TestWhatIsKeptUnsignedIsNotVerified(t *testing.T) {
	t.Parallel()
	s := begin(t)
	repo, ann := charts.Serve(t), charts.NewSigner(t, "ann", nil)
	archive, err := charts.Get("test-nginx", "0.0.1")
	s.must(err)
	s.must(s.management.Create(s.ctx, &corev1.Secret{
		ObjectMeta: s.meta("keys"), Data: map[string][]byte{"pubring.gpg": ann.Public()},
	}))
	pinned := shipper.Chart{Name: archive.Name, Version: archive.Version, RepoURL: repo.URL}
	s.keptFor(archive, s.released("one", pinned, archive.Digest))
	pinned.Verify.SecretName = "keys"
	verify := func() (shipper.ChartSignature, error) {
		catalog := repository.NewCatalog(s.ctx, repository.Options{Repositories: charts.Policy(t), Secrets: repository.SecretsOf(s.management)})
		kept := artifact.NewCharts(catalog, s.management)
		if _, err := kept.Load(s.ctx, s.namespace, pinned, archive.Digest); err != nil {
			t.Errorf("it cannot be loaded: %v", err)
		}
		return kept.Verify(s.ctx, s.namespace, pinned, archive.Digest)
	}
	if _, err := verify(); !errors.Is(err, chart.ErrProvenance) {
		t.Errorf("it is not signed, and the answer is %v", err)
	}
	repo.PublishProvenance(archive.Name, archive.Version, ann.Sign(archive))
	got, err := verify()
	want := shipper.ChartSignature{Digest: archive.Digest, Fingerprint: ann.Fingerprint(), Identity: "ann <ann@example.com>"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("once it is signed: %v (-want +got)\n%s", err, diff)
	}
}
