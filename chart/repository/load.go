// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/outward"
)

// Loader loads charts, wherever they are kept.
type Loader interface {
	// Load returns the chart of an exact version whose archive has a digest, if one is known, for use in a namespace.
	Load(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (*render.Chart, error)
}

// Verifier verifies signatures of charts.
type Verifier interface {
	// Verify returns the signature of the archive with a digest, and fails unless it is of the signer in pinned.Verify.
	Verify(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (shipper.ChartSignature, error)
}

// Load returns the chart of the exact version in pinned. Its archive must have the digest or, if that is empty, the one in the
// index. A loaded archive is used again without a request to the repository, with a CacheDir also after a restart. One fetched
// with credentials is used again only in the namespace of their Secret, by charts that name it.
func (c *Catalog) Load(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (*render.Chart, error) {
	return c.LoadKept(ctx, namespace, pinned, digest, nil)
}

// LoadKept is Load with a fallback before the repository: kept returns the archive with that digest, or ErrNotKept. LoadKept
// checks its digest, and does not call it without one. A kept archive is used even if its repository is no longer allowed: it
// was allowed when it was admitted.
func (c *Catalog) LoadKept(
	ctx context.Context, namespace string, pinned shipper.Chart, digest string, kept func(context.Context) ([]byte, error),
) (*render.Chart, error) {
	key := archiveKey{
		digest: strings.TrimPrefix(strings.ToLower(digest), "sha256:"), name: pinned.Name, version: pinned.Version,
		scope: opens(namespace, pinned),
	}
	if key.digest != "" && !verify.IsDigest(key.digest) {
		return nil, chart.BrokenSpec(chart.ErrDigest, "%q is not the sha256 of a chart's archive", chart.Shorten(digest))
	}
	if pinned.Archive != "" {
		return c.inline(pinned, key)
	}
	u, err := parseRepository(pinned.RepoURL)
	if err != nil {
		return nil, err
	}
	key.repo = u.String()
	if loaded, ok := c.charts.Get(key.stored()); ok {
		return loaded, loaded.IsA(pinned)
	}
	// The load continues when this caller leaves: others may wait for it too.
	flight := c.loads.DoChan(fmt.Sprintf("%q", []any{namespace, key}), func() (any, error) { return c.load(namespace, pinned, key, kept) })
	select {
	case <-ctx.Done():
		return nil, chart.FetchFailure(ctx.Err(), "chart %q %s of repository %s is still being fetched",
			chart.Shorten(pinned.Name), chart.Shorten(pinned.Version), outward.Redact(u))
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		loaded, _ := result.Val.(*render.Chart)
		return loaded, loaded.IsA(pinned)
	}
}

// load reads the archive from disk or from kept, or fetches it, and opens it.
func (c *Catalog) load(
	namespace string, pinned shipper.Chart, key archiveKey, kept func(context.Context) ([]byte, error),
) (*render.Chart, error) {
	if archive, ok := c.disk.get(key); ok {
		loaded, err := c.renders.Open(archive)
		if err == nil {
			c.charts.Put(key.stored(), loaded, loaded.Size())
			return loaded, nil
		}
		c.disk.drop(key)
	}
	if loaded, err := c.loadKept(key, kept); loaded != nil || err != nil {
		return loaded, err
	}
	if err := c.Allows(pinned.RepoURL); err != nil {
		return nil, err
	}
	now := c.options.Clock.Now()
	failing, _ := c.broken.Get(key)
	if failing.holds(now) {
		return nil, failing.refusal()
	}
	loaded, err := c.fetch(namespace, pinned, key)
	if err == nil {
		c.broken.Drop(key)
		return loaded, nil
	}
	if failure, ok := errors.AsType[*chart.Error](err); ok && !errors.Is(err, errIndex) {
		failing.fail(c.options.Clock.Now(), failure)
		c.broken.Put(key, failing, 1)
	}
	return nil, err
}

// loadKept opens the archive that kept returns. Without a valid one it returns nil, and the repository is used.
func (c *Catalog) loadKept(key archiveKey, kept func(context.Context) ([]byte, error)) (*render.Chart, error) {
	if kept == nil || key.digest == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.options.FetchTimeout)
	defer cancel()
	archive, err := kept(ctx)
	switch {
	case errors.Is(err, chart.ErrNotKept):
		return nil, nil
	case err != nil:
		return nil, chart.FetchFailure(err, "reading the chart that is kept under %s: %s", chart.Shorten(key.digest), err)
	case verify.DigestOf(archive) != key.digest:
		c.options.Log.Info("What is kept of a chart is not what it should be, and is not used", "digest", key.digest)
		return nil, nil
	}
	loaded, err := c.renders.Open(archive)
	if err != nil {
		return nil, err
	}
	c.disk.put(key, archive)
	c.charts.Put(key.stored(), loaded, loaded.Size())
	return loaded, nil
}
