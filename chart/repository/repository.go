// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/outward"
)

const (
	// mostPause bounds the pause after a refresh before a caller can force another one.
	mostPause = time.Second
	// mostAge is the age of an index above which callers wait a little for its refresh.
	mostAge = time.Minute
)

// repository is the cached state of one repository. Its index is replaced as a whole, never changed.
type repository struct {
	// url is the folder that holds index.yaml, or the chart in a registry; name is the same for messages.
	url  *url.URL
	name string
	// key is its key in the catalog: its URL and its credentials' scope.
	key string
	// client makes the http requests; secret is the name of its Secret, if it has one.
	client *http.Client
	secret string
	// registry is set only for a chart in a registry.
	registry *registry

	mu    sync.Mutex
	known *index.Index
	marks validators
	// checked is when known was last confirmed, and took is how long that took.
	checked time.Time
	took    time.Duration
	used    time.Time
	failing backoff
	// flight is closed when the refresh in progress ends; nil when there is none. next is closed when the one after it ends;
	// nil when no caller waits for that.
	flight, next chan struct{}
	// resting is true until the refresh in progress sends its request. asked counts the requests, and answered is the number of
	// the request that returned known.
	resting         bool
	asked, answered int
}

// snapshot is the state of a repository at one moment.
type snapshot struct {
	index   *index.Index
	checked time.Time
	// failure is the error of the last refresh; nil when it succeeded.
	failure *chart.Error
}

// noMatch is the error when no version satisfies c. It mentions if the index may be old.
func (s snapshot) noMatch(repository, chart string, c index.Constraint) *chart.Error {
	failure := s.index.NoMatch(repository, chart, c)
	if s.failure != nil {
		failure.Message += "; the repository may have more by now, but " + s.failure.Message
	}
	return failure
}

func newRepository(u *url.URL, key string, a *access) *repository {
	r := &repository{url: u, name: outward.Redact(u), key: key}
	if a != nil {
		r.secret = a.secret
	}
	return r
}

// indexURL is the URL of the index.
func (r *repository) indexURL() *url.URL {
	u := *r.url
	u.Path += "/index.yaml"
	if u.RawPath != "" {
		u.RawPath += "/index.yaml"
	}
	return &u
}

// snapshot returns the current state.
func (r *repository) snapshot() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return snapshot{index: r.known, checked: r.checked, failure: r.failing.err}
}

// size is the size of the index in memory.
func (r *repository) size() int64 {
	if s := r.snapshot(); s.index != nil {
		return s.index.Size
	}
	return 0
}

// visit is a caller's: asked is the number of requests for the index before it came. A caller that insists needs the answer to
// a later request: an earlier one may lack a version that it has just published.
type visit struct {
	asked  int
	insist bool
}

// visit starts one.
func (r *repository) visit(insist bool) visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return visit{asked: r.asked, insist: insist}
}

// lookUp finds an entry in a repository's index. It refreshes the index before it reports that there is none. known is the
// index that it used last.
func (c *Catalog) lookUp(
	ctx context.Context, r *repository, find func(*index.Index) (index.Entry, bool),
) (known snapshot, found index.Entry, ok bool, err error) {
	by := r.visit(false)
	if known, err = c.index(ctx, r, by); err != nil {
		return known, found, false, err
	}
	if found, ok = find(known.index); ok {
		return known, found, true, nil
	}
	by.insist = true
	if known, err = c.index(ctx, r, by); err != nil {
		return known, found, false, err
	}
	found, ok = find(known.index)
	return known, found, ok, nil
}

// index returns a repository's index. A cached one is returned at once and refreshed in the background when it is no longer
// fresh; only if it is old, or if the caller insists, the call waits for the refresh, for at most Patience. Without a cached
// index it waits as long as ctx allows.
func (c *Catalog) index(ctx context.Context, r *repository, by visit) (snapshot, error) {
	now := c.options.Clock.Now()
	known, done, refusal := c.begin(r, now, by)
	switch {
	case refusal != nil:
		return snapshot{}, refusal
	case done == nil:
		return known, nil
	case known.index != nil && !by.insist && now.Sub(known.checked) < mostAge:
		return known, nil
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if known.index != nil {
		waiting, cancel = context.WithTimeout(ctx, c.options.Patience)
	}
	defer cancel()
	select {
	case <-done:
	case <-waiting.Done():
		late := chart.FetchFailure(errors.Join(chart.ErrUnreachable, ctx.Err()), "repository %s has not answered in time", r.name)
		if known.index == nil {
			return snapshot{}, late
		}
		known = r.snapshot() // another answer may have come meanwhile
		if by.insist && known.failure == nil {
			known.failure = late
		}
		return known, nil
	}
	after := r.snapshot()
	if after.index == nil {
		return snapshot{}, after.failure
	}
	return after, nil
}

// begin decides whether to refresh the index. done is nil if not; otherwise it is closed when the refresh to wait for has
// ended. refusal is set if no index is cached and it is too early to retry.
func (c *Catalog) begin(r *repository, now time.Time, by visit) (known snapshot, done <-chan struct{}, refusal error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known = snapshot{index: r.known, checked: r.checked, failure: r.failing.err}
	switch {
	case by.insist && r.answered > by.asked:
		return known, nil, nil
	case r.flight != nil && by.insist && !r.resting && r.asked <= by.asked:
		if r.next == nil {
			r.next = make(chan struct{})
		}
		return known, r.next, nil
	case r.flight != nil:
		return known, r.flight, nil
	case !by.insist && r.known != nil && r.failing.err == nil && now.Sub(r.checked) < c.options.FreshFor:
		return known, nil, nil
	case r.failing.holds(now) && r.known != nil:
		return known, nil, nil
	case r.failing.holds(now):
		return known, nil, r.failing.refusal()
	}
	c.launch(r, make(chan struct{}), now)
	return known, r.flight, nil
}

// launch starts a refresh; done is closed when it ends. r is locked.
func (c *Catalog) launch(r *repository, done chan struct{}, now time.Time) {
	r.flight, r.resting = done, true
	go c.refresh(r, r.marks, r.pause(now))
}

// pause is the remaining time before the next refresh: as long as the last answer took, so that callers that insist cannot keep
// a large index being downloaded and parsed all the time.
func (r *repository) pause(now time.Time) time.Duration {
	return max(0, min(r.took, mostPause)-now.Sub(r.checked))
}

// refresh requests the index once, stores the result, and starts again when a caller waits for the next answer.
func (c *Catalog) refresh(r *repository, known validators, pause time.Duration) {
	rest, rested := context.WithTimeout(c.ctx, pause)
	defer rested()
	<-rest.Done()
	number := r.ask()
	ctx, cancel := context.WithTimeout(c.ctx, c.options.FetchTimeout)
	defer cancel()
	begun := c.options.Clock.Now()
	fresh, marks, changed, err := c.list(ctx, r, known)
	now := c.options.Clock.Now()
	r.mu.Lock()
	if err == nil && changed && fresh.Empty() && r.known != nil && !r.known.Empty() {
		err = errors.New("lists no charts any more; what it listed before is still used")
	}
	switch {
	case err != nil:
		r.failing.fail(now, r.explain(err))
		c.options.Log.Info("Could not refresh chart index", "repository", r.name, "reason", r.failing.err.Message)
	case changed:
		r.known, r.marks = fresh, marks
		fallthrough
	default:
		r.checked, r.took, r.answered, r.failing = now, now.Sub(begun), number, backoff{}
	}
	c.land(r, now)
	r.mu.Unlock()
	c.trim(now)
}

// ask counts a request for the index, and returns its number.
func (r *repository) ask() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.resting = false
	return r.asked
}

// land notifies the waiting callers that a refresh has ended. The next one starts if a caller waits for it and this one did not
// fail. r is locked.
func (c *Catalog) land(r *repository, now time.Time) {
	close(r.flight)
	next := r.next
	r.flight, r.next = nil, nil
	switch {
	case next == nil:
	case r.failing.holds(now):
		close(next)
	default:
		c.launch(r, next, now)
	}
}

// list requests the index; nil and changed false if the known one is still current.
func (c *Catalog) list(
	ctx context.Context, r *repository, known validators,
) (fresh *index.Index, marks validators, changed bool, err error) {
	if r.registry != nil {
		fresh, err = r.registry.list(ctx)
		return fresh, known, err == nil, err
	}
	marks, changed, err = c.fetcher.get(ctx, r.client, r.indexURL(), known, c.options.MaxIndexBytes, func(body []byte) error {
		parsed, err := chart.Guard(func() (*index.Index, error) { return c.indexes.Parse(r.url.Host, body) })
		fresh = parsed
		return err
	})
	return fresh, marks, changed, err
}

// explain turns an error of a refresh into the error for users.
func (r *repository) explain(err error) *chart.Error {
	where, what := outward.Redact(r.indexURL()), "chart index"
	if r.registry != nil {
		where, what = r.name, "list of tags of"
	}
	if status, ok := errors.AsType[statusError](err); ok && !status.temporary() {
		return chart.FetchFailure(chart.ErrNotRepository, "there is no chart repository at %s: %s%s", where, status, r.hint(status))
	}
	if failure, ok := errors.AsType[*chart.Unusable](err); ok {
		return chart.FetchFailure(chart.ErrNotRepository, "%s %s", where, failure.Err)
	}
	if why, ok := errors.AsType[*outward.Denied](err); ok {
		return chart.FetchFailure(errors.Join(chart.ErrNotAllowed, why), "%s %s: %s", what, where, why)
	}
	return chart.FetchFailure(fmt.Errorf("%w: %w", chart.ErrUnreachable, err), "%s %s cannot be fetched: %s", what, where, err)
}

// hint says which credentials the refused request had.
func (r *repository) hint(status statusError) string {
	switch {
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case r.secret != "":
		return "; it was asked with the credentials of Secret " + r.secret
	case r.registry != nil:
		return "; chart.credentials can name a Secret that opens it"
	}
	return ""
}
