// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// crowd has a team load ten charts of a repository that answers as fault says, and returns when it is asked for as many files as that
// comes to. A call of end waits until all have ended, and serves those files.
func crowd(t *testing.T, s *env, fault charts.Fault, file string, files int) (end func()) {
	t.Helper()
	const all = 10
	for i := range all {
		s.publish("slow", fmt.Sprint("0.0.", i))
	}
	s.repo.Break(fault)
	ended := make(chan error, all)
	for i := range all {
		go func() {
			_, err := s.Load(t.Context(), "a", s.chart("slow", fmt.Sprint("0.0.", i)), "")
			ended <- err
		}()
	}
	await(t, func() bool { return s.repo.Requests(file) >= files })
	return func() {
		t.Helper()
		s.repo.Heal()
		for range all {
			if err := <-ended; err == nil {
				t.Error("what is no archive was opened")
			}
		}
	}
}

// await looks until it is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatal("it does not come to that")
		case <-time.After(time.Millisecond):
		}
	}
}

// loads fails unless a namespace gets a chart soon.
func loads(t *testing.T, s *env, namespace string, pinned shipper.Chart) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Load(ctx, namespace, pinned, ""); err != nil {
		t.Errorf("namespace %s waits: %v", namespace, err)
	}
}

func TestDownloadsOfOneTeamLeaveRoomToOthers(t *testing.T) {
	s, other := newEnv(t), charts.Serve(t)
	end := crowd(t, s, charts.StalledArchives, ".tgz", 4)
	loads(t, s, "b", shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: other.URL})
	if diff := cmp.Diff(4, s.repo.Requests(".tgz")); diff != "" {
		t.Errorf("one team downloads another number at a time: %s", diff)
	}
	archive := archive(t, "test-nginx", "0.0.1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kept := shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: other.URL}
	_, err := s.LoadKept(ctx, "a", kept, archive.Digest, func(context.Context) ([]byte, error) { return archive.Bytes, nil })
	if err != nil {
		t.Errorf("what is kept waits for what is not: %v", err)
	}
	end()
	if diff := cmp.Diff(10, s.repo.Requests(".tgz")); diff != "" {
		t.Errorf("in the end: %s", diff)
	}
}

// TestAnIndexThatHangsKeepsNoOtherChart has the index of a repository hang, of which a team wants many charts.
func TestAnIndexThatHangsKeepsNoOtherChart(t *testing.T) {
	s, other := newEnv(t), charts.Serve(t)
	end := crowd(t, s, charts.Stalled, "index.yaml", 1)
	loads(t, s, "a", shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: other.URL})
	end()
}

// TestADownloadSharedByTeamsDoesNotWaitForTheSlotOfOne has a team wait for its own downloads before it asks for what all have.
func TestADownloadSharedByTeamsDoesNotWaitForTheSlotOfOne(t *testing.T) {
	s, other := newEnv(t), charts.Serve(t)
	end := crowd(t, s, charts.StalledArchives, ".tgz", 4)
	shared := shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: other.URL}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Load(t.Context(), "a", shared, "")
		ended <- err
	}()
	await(t, func() bool { return other.Requests("index.yaml") >= 1 })
	loads(t, s, "b", shared)
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAnArchiveWantedByManyTeamsIsDownloadedOnce(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.StalledArchives)
	const teams = 16
	ended := make(chan error, teams)
	for i := range teams {
		go func() {
			_, err := s.Load(t.Context(), fmt.Sprint("team-", i), s.chart("nginx", "0.0.1"), "")
			ended <- err
		}()
	}
	await(t, func() bool { return s.repo.Requests(".tgz") > 0 })
	s.repo.Heal()
	for range teams {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(1, s.repo.Requests(".tgz")); diff != "" {
		t.Errorf("it is downloaded another number of times: %s", diff)
	}
}
