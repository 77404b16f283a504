// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFollowMissesNoChange needs no API server: Follow reads from etcd.
func TestFollowMissesNoChange(t *testing.T) {
	c := onlyStored(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	put := func(key, value string) {
		t.Helper()
		if err := c.Put(ctx, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("/pods/a/old", "0")
	put("/pods/a/gone", "1")
	since, err := c.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	put("/pods/a/old", "2") // before Follow begins
	done := errors.New("all is seen")
	followed, seen := context.WithCancelCause(ctx)
	changes := make(chan Change)
	prefixes := []string{"pods/a/"}
	for i := range 40 { // more than etcd reads of one request at once
		prefixes = append(prefixes, fmt.Sprintf("configmaps/namespace-%d/", i))
	}
	prefixes = append(prefixes, "pods/b/")
	go func() {
		err := c.Follow(followed, since, prefixes, func(change Change) { changes <- change })
		if !errors.Is(err, done) {
			t.Errorf("following ended with %v, want that %v", err, done)
		}
		close(changes)
	}()
	got := []Change{<-changes}
	put("/pods/ab/other", "3") // in a namespace whose name begins with that of the followed one
	put("/pods/b/new", "4")
	got = append(got, <-changes)
	first, _ := c.keys("pods/a/gone")
	if err := c.ask(ctx, "/v3/kv/deleterange", map[string]any{"key": first}, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	got = append(got, <-changes)
	seen(done)
	<-changes
	want := []Change{
		{Key: "pods/a/old", Revision: since + 1, Before: []byte("0"), After: []byte("2")},
		{Key: "pods/b/new", Revision: since + 3, After: []byte("4")},
		{Key: "pods/a/gone", Revision: since + 4, Before: []byte("1")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}
}

// onlyStored returns a cluster that consists of an etcd.
func onlyStored(t *testing.T) *Cluster {
	t.Helper()
	version, _ := versions()
	programs, err := binaries(t.Context(), os.Stderr, version)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{programs: programs}
	if err := f.prepare(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.end(); err != nil {
			t.Error(err)
		}
	})
	etcd, err := f.startStore("etcd")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Name: "stored", fleet: f, store: etcd}
	err = c.wait(t.Context(), "etcd", func(ctx context.Context) (bool, error) {
		return healthy(ctx, http.DefaultClient, etcd.url("/health"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
