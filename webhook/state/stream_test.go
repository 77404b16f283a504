// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// server answers requests with code, and with a body that lasts until it is closed.
type server struct {
	code int
	body *io.PipeWriter // of the last answer
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	if s.code == 0 {
		return nil, errors.New("no answer")
	}
	var body *io.PipeReader
	body, s.body = io.Pipe()
	return &http.Response{StatusCode: s.code, Body: body}, nil
}

// send sends a request to path and returns the body of the response.
func send(t *testing.T, through http.RoundTripper, path string) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(r)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { response.Body.Close() })
	return response.Body
}

const watching = "/apis/shipper.booking.com/v1alpha1/rolloutblocks?watch=true&allowWatchBookmarks=true"

func TestAWatchIsDoubtedOnceItHasEnded(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	s, api := NewStream(now), &server{code: http.StatusOK}
	through := s.Wrap(api)
	var got []bool
	after := func(d time.Duration) {
		now.SetTime(now.Now().Add(d))
		got = append(got, s.Up())
	}
	after(0) // there was no watch yet
	for _, path := range []string{
		"/apis/shipper.booking.com/v1alpha1/rolloutblocks", "/apis/shipper.booking.com/v1alpha1/releases?watch=true",
	} {
		send(t, through, path)
	}
	after(0) // a list, or another watch, is not a watch of blocks
	first := send(t, through, watching)
	after(0)
	after(time.Hour)
	_ = first.Close()
	after(tolerated)
	after(1)
	if down := s.Down(); down != tolerated+1 {
		t.Errorf("the watch is down for %s", down)
	}
	api.code = http.StatusTooManyRequests
	send(t, through, watching)
	api.code = 0
	send(t, through, watching)
	after(0)
	api.code = http.StatusOK
	second := send(t, through, watching)
	after(settling) // missed events may still be on their way
	after(1)
	_ = api.body.CloseWithError(errors.New("the connection was lost"))
	_, _ = io.ReadAll(second)
	_ = second.Close()
	after(0) // it did not end in order
	third := send(t, through, watching)
	after(0)
	after(settling + 1)
	_ = api.body.Close()
	_, _ = io.ReadAll(third)
	after(tolerated)
	send(t, through, watching)
	after(0) // it was away only for a moment
	want := []bool{false, false, true, true, true, false, false, false, true, false, false, true, true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("up (-want +got):\n%s", diff)
	}
	if down := s.Down(); down != 0 {
		t.Errorf("the watch is up, and down for %s", down)
	}
}

// lists is an API server that has blocks, and counts how often it is asked for them.
type lists struct {
	client.Reader

	blocks []string
	err    error
	asked  int
}

func (l *lists) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	l.asked++
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("the request has no deadline")
	}
	for _, name := range l.blocks {
		b := shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "frozen", Name: name}}
		list := into.(*shipper.RolloutBlockList)
		list.Items = append(list.Items, b)
	}
	return l.err
}

func TestWhileTheWatchIsDownTheAPIServerIsAsked(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	api, synced := &lists{blocks: []string{"new"}}, false
	known := NewIndexers()
	if err := known.Blocks.Add(&shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "frozen", Name: "old"}}); err != nil {
		t.Fatal(err)
	}
	w := &Watched{Reader: New(known, api, "global"), stream: NewStream(now), synced: func() bool { return synced }}
	through := w.stream.Wrap(&server{code: http.StatusOK})
	check := func(when, wantErr string, wantAsked int, wantBlocks ...string) {
		t.Helper()
		text := ""
		if err := w.Ready(t.Context()); err != nil {
			text = err.Error()
		}
		if (wantErr == "") != (text == "") || !strings.Contains(text, wantErr) || api.asked != wantAsked {
			t.Errorf("%s: error %q after asking %d times, want %q and %d", when, text, api.asked, wantErr, wantAsked)
		}
		if text != "" {
			return
		}
		blocks, err := w.BlocksFor("frozen")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range blocks {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(wantBlocks, names); diff != "" {
			t.Errorf("%s: blocks (-want +got):\n%s", when, diff)
		}
	}
	check("before all is known", "has just started", 0)
	synced = true
	stream := send(t, through, watching)
	check("while the watch is up", "", 0, "old")
	_ = stream.Close()
	now.SetTime(now.Now().Add(tolerated + 1))
	check("when the watch is down", "", 1, "new")
	check("a moment later", "", 1, "new")
	now.SetTime(now.Now().Add(tolerated + 1))
	check("after more than a second", "", 2, "new")
	api.err = errors.New("no route to host")
	check("while the last answer is good", "", 2, "new")
	now.SetTime(now.Now().Add(tolerated + 1))
	check("when the API server is away", "has lost the API server and does not know the RolloutBlocks of this moment: no route", 3)
	send(t, through, watching)
	now.SetTime(now.Now().Add(settling + 1))
	check("when the watch is up again", "", 3, "old")
}

func TestNoReviewWaitsPastItsDeadline(t *testing.T) {
	w := &Watched{
		Reader: New(NewIndexers(), &forever{}, ""), stream: NewStream(testingclock.NewFakePassiveClock(time.Unix(1000, 0))),
		synced: func() bool { return true },
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// forever answers only when its context ends.
type forever struct{ client.Reader }

func (*forever) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}
