// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// sha256Hex is what a digest looks like.
var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Loader loads charts for those who render or count, and need not know where they are kept.
type Loader interface {
	// Load returns the chart of an exact version whose archive has a digest, if one is known, for use in a namespace.
	Load(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (*Chart, error)
}

// Load returns the chart of the exact version that pinned names. Its archive must have the digest given or, when that
// is empty, the one in the index. An archive that was loaded before is used again without asking the repository, also
// after a restart when there is a CacheDir: a version once published is taken never to change.
func (c *Catalog) Load(ctx context.Context, pinned shipper.Chart, digest string) (*Chart, error) {
	return c.LoadKept(ctx, pinned, digest, nil)
}

// LoadKept is Load with another place to look before the repository is asked: kept returns the archive of that digest, or
// ErrNotKept. It is not called without a digest, and what it returns is held against it.
func (c *Catalog) LoadKept(
	ctx context.Context, pinned shipper.Chart, digest string, kept func(context.Context) ([]byte, error),
) (*Chart, error) {
	r, err := c.repository(pinned.RepoURL)
	if err != nil {
		return nil, err
	}
	key := archiveKey{
		digest: strings.TrimPrefix(strings.ToLower(digest), "sha256:"),
		repo:   r.url.String(), name: pinned.Name, version: pinned.Version,
	}
	if key.digest != "" && !sha256Hex.MatchString(key.digest) {
		return nil, brokenSpec(ErrDigest, "%q is not the sha256 of a chart's archive", shorten(digest))
	}
	if loaded, ok := c.charts.get(key.stored()); ok {
		return loaded, loaded.isA(pinned)
	}
	// The load goes on when this caller leaves: others may wait for it too.
	flight := c.loads.DoChan(fmt.Sprintf("%q", key), func() (any, error) { return c.load(r, pinned, key, kept) })
	select {
	case <-ctx.Done():
		return nil, fetchFailure(ctx.Err(), "chart %q %s of repository %s is still being fetched",
			shorten(pinned.Name), shorten(pinned.Version), r.name)
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		loaded, _ := result.Val.(*Chart)
		return loaded, loaded.isA(pinned)
	}
}

// load finds the archive on disk or where it is kept, or fetches it, and opens it.
func (c *Catalog) load(
	r *repository, pinned shipper.Chart, key archiveKey, kept func(context.Context) ([]byte, error),
) (*Chart, error) {
	if archive, ok := c.disk.get(key); ok {
		loaded, err := open(archive, c.renders)
		if err == nil {
			c.charts.put(key.stored(), loaded, loaded.size)
			return loaded, nil
		}
		c.disk.drop(key)
	}
	if loaded, err := c.loadKept(key, kept); loaded != nil || err != nil {
		return loaded, err
	}
	now := c.options.Clock.Now()
	failing, _ := c.broken.get(key)
	if failing.holds(now) {
		return nil, failing.refusal()
	}
	loaded, err := c.fetch(r, pinned, key)
	if err == nil {
		c.broken.drop(key)
		c.charts.put(key.stored(), loaded, loaded.size)
		return loaded, nil
	}
	if told, ok := errors.AsType[*Error](err); ok && !errors.Is(err, errIndex) {
		failing.fail(c.options.Clock.Now(), told)
		c.broken.put(key, failing, 1)
	}
	return nil, err
}

// loadKept opens the archive that is kept elsewhere. It returns nothing where nothing is, or nothing that is right: then the
// repository is asked.
func (c *Catalog) loadKept(key archiveKey, kept func(context.Context) ([]byte, error)) (*Chart, error) {
	if kept == nil || key.digest == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.options.FetchTimeout)
	defer cancel()
	archive, err := kept(ctx)
	switch {
	case errors.Is(err, ErrNotKept):
		return nil, nil
	case err != nil:
		return nil, fetchFailure(err, "reading the chart that is kept under %s: %s", shorten(key.digest), err)
	case digestOf(archive) != key.digest:
		c.options.Log.Info("What is kept of a chart is not what it should be, and is not used", "digest", key.digest)
		return nil, nil
	}
	loaded, err := open(archive, c.renders)
	if err != nil {
		return nil, err
	}
	c.disk.put(key, archive)
	c.charts.put(key.stored(), loaded, loaded.size)
	return loaded, nil
}

// errIndex marks failures that are the index's, which has a backoff of its own.
var errIndex = errors.New("index")

// fetch downloads the archive from the first of its URLs that gives the right one.
func (c *Catalog) fetch(r *repository, pinned shipper.Chart, key archiveKey) (*Chart, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.options.FetchTimeout)
	defer cancel()
	found, err := c.find(ctx, r, pinned)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("chart %q %s of repository %s", shorten(pinned.Name), shorten(found.version), r.name)
	if len(found.urls) == 0 {
		return nil, brokenSpec(nil, "%s: the index gives no URL for it", what)
	}
	digest := orDefault(key.digest, found.digest)
	told := &Error{Reason: shipper.BrokenChartSpec}
	var failures []string
	var causes []error
	for _, reference := range found.urls {
		loaded, err := c.fetchFrom(ctx, r.url, reference, key, digest)
		if err == nil {
			return loaded, nil
		}
		failures, causes = append(failures, err.Message), append(causes, err.Cause)
		if err.Retry {
			told.Reason, told.Retry = err.Reason, true
		}
	}
	told.Message, told.Cause = fmt.Sprintf("%s: %s", what, strings.Join(failures, "; ")), errors.Join(causes...)
	return nil, told
}

// find looks the pinned version up in the index, which is asked for anew when it does not have it.
func (c *Catalog) find(ctx context.Context, r *repository, pinned shipper.Chart) (entry, error) {
	for _, insist := range []bool{false, true} {
		known, err := c.index(ctx, r, insist)
		if err != nil {
			told := *asError(err)
			told.Cause = errors.Join(told.Cause, errIndex)
			return entry{}, &told
		}
		if found, ok := known.index.exact(pinned.Name, pinned.Version); ok {
			return found, nil
		}
		if insist {
			pin := constraint{raw: pinned.Version, build: true}
			told := known.noMatch(r.name, pinned.Name, pin)
			// It was there when it was admitted, or nobody could look: it may come.
			told.Retry, told.Cause = true, errors.Join(ErrNoMatch, errIndex)
			return entry{}, told
		}
	}
	return entry{}, nil
}

// asError is err as this package returns it.
func asError(err error) *Error {
	if told, ok := errors.AsType[*Error](err); ok {
		return told
	}
	return fetchFailure(err, "%s", err)
}

// fetchFrom downloads the archive from one URL and checks it.
func (c *Catalog) fetchFrom(
	ctx context.Context, repository *url.URL, reference string, key archiveKey, digest string,
) (*Chart, *Error) {
	u, err := join(repository, reference)
	if err != nil {
		return nil, brokenSpec(nil, "%s", err)
	}
	var loaded *Chart
	_, _, err = c.fetcher.get(ctx, u, validators{}, c.options.MaxArchiveBytes, func(archive []byte) error {
		if got := digestOf(archive); digest != "" && got != digest {
			return brokenSpec(ErrDigest, "%s has the sha256 %s, but %s is expected", redact(u), got, shorten(digest))
		}
		archive = slices.Clone(archive) // what was downloaded is the fetcher's
		opened, err := open(archive, c.renders)
		if err != nil {
			return err
		}
		loaded = opened
		c.disk.put(key, archive)
		return nil
	})
	if told, ok := errors.AsType[*Error](err); ok {
		return nil, told
	}
	if told, ok := errors.AsType[*unusable](err); ok {
		return nil, brokenSpec(told, "%s %s", redact(u), told)
	}
	if why, ok := errors.AsType[*denied](err); ok {
		return nil, fetchFailure(errors.Join(ErrNotAllowed, why), "archive %s: %s", redact(u), why)
	}
	if err != nil {
		return nil, fetchFailure(err, "download %s: %s", redact(u), err)
	}
	return loaded, nil
}

// isA refuses a chart that is not the one that was asked for, whatever its digest.
func (c *Chart) isA(pinned shipper.Chart) error {
	if c.helm.Name() != pinned.Name {
		return brokenSpec(nil, "the archive of chart %q %s holds chart %q", shorten(pinned.Name), shorten(pinned.Version),
			shorten(c.helm.Name()))
	}
	want, err := semver.NewVersion(pinned.Version)
	if err != nil {
		return nil // the index found it by its name alone; nothing is left to compare
	}
	if got, err := semver.NewVersion(c.helm.Metadata.Version); err != nil || !got.Equal(want) {
		return brokenSpec(nil, "the archive of chart %q %s holds version %s", shorten(pinned.Name), shorten(pinned.Version),
			shorten(c.helm.Metadata.Version))
	}
	return nil
}
