// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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

// Verifier says who signed charts.
type Verifier interface {
	// Verify says who signed the archive of a digest, and fails unless that is whom pinned.Verify demands.
	Verify(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (shipper.ChartSignature, error)
}

// Load returns the chart of the exact version that pinned names. Its archive must have the digest given or, when that
// is empty, the one in the index. An archive that was loaded before is used again without asking the repository, also
// after a restart when there is a CacheDir: a version once published is taken never to change. One that was fetched with
// credentials is used again only in the namespace of their Secret, by charts that name it.
func (c *Catalog) Load(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (*Chart, error) {
	return c.LoadKept(ctx, namespace, pinned, digest, nil)
}

// LoadKept is Load with another place to look before the repository is asked: kept returns the archive of that digest, or
// ErrNotKept. It is not called without a digest, and what it returns is held against it. What is found without asking the
// repository is used also when charts may not be fetched from there any more: it was admitted when they might.
func (c *Catalog) LoadKept(
	ctx context.Context, namespace string, pinned shipper.Chart, digest string, kept func(context.Context) ([]byte, error),
) (*Chart, error) {
	key := archiveKey{
		digest: strings.TrimPrefix(strings.ToLower(digest), "sha256:"), name: pinned.Name, version: pinned.Version,
		scope: opens(namespace, pinned),
	}
	if key.digest != "" && !sha256Hex.MatchString(key.digest) {
		return nil, brokenSpec(ErrDigest, "%q is not the sha256 of a chart's archive", shorten(digest))
	}
	if pinned.Archive != "" {
		return c.inline(pinned, key)
	}
	u, err := parseRepository(pinned.RepoURL)
	if err != nil {
		return nil, err
	}
	key.repo = u.String()
	if loaded, ok := c.charts.get(key.stored()); ok {
		return loaded, loaded.isA(pinned)
	}
	// The load goes on when this caller leaves: others may wait for it too.
	flight := c.loads.DoChan(fmt.Sprintf("%q", []any{namespace, key}), func() (any, error) { return c.load(namespace, pinned, key, kept) })
	select {
	case <-ctx.Done():
		return nil, fetchFailure(ctx.Err(), "chart %q %s of repository %s is still being fetched",
			shorten(pinned.Name), shorten(pinned.Version), redact(u))
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
	namespace string, pinned shipper.Chart, key archiveKey, kept func(context.Context) ([]byte, error),
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
	if err := c.Allows(pinned.RepoURL); err != nil {
		return nil, err
	}
	now := c.options.Clock.Now()
	failing, _ := c.broken.get(key)
	if failing.holds(now) {
		return nil, failing.refusal()
	}
	loaded, err := c.fetch(namespace, pinned, key)
	if err == nil {
		c.broken.drop(key)
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
