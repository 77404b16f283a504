// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/outward"
)

// downloadsEach bounds, per namespace, the archives and provenances being downloaded and opened at one time, so that no
// namespace fills maxInFlight. The bound does not count other namespaces: repositories that hang for one must not stop the
// others. Indexes are shared by all and not counted.
const downloadsEach = 4

// errIndex marks failures of the index, which has its own backoff.
var errIndex = errors.New("index")

// fetch finds the archive in the index and downloads it in a slot of its namespace. Namespaces that have a slot share a
// download; none waits for the slot of another.
func (c *Catalog) fetch(namespace string, pinned shipper.Chart, key archiveKey) (*render.Chart, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.options.FetchTimeout)
	defer cancel()
	r, err := c.repository(ctx, namespace, pinned)
	if err != nil {
		return nil, err
	}
	found, err := c.find(ctx, r, pinned)
	if err != nil {
		return nil, err
	}
	if err := c.downloads.Enter(ctx, namespace); err != nil {
		return nil, chart.FetchFailure(err, "chart %q %s of repository %s waits for others of namespace %q that are being downloaded",
			chart.Shorten(pinned.Name), chart.Shorten(found.Version), r.name, namespace)
	}
	defer c.downloads.Leave(namespace)
	loaded, err, _ := c.loads.Do(fmt.Sprintf("download %q", key), func() (any, error) {
		if loaded, ok := c.charts.Get(key.stored()); ok { // loaded while this waited
			return loaded, nil
		}
		loaded, err := c.download(ctx, r, pinned, found, key)
		if err == nil {
			c.charts.Put(key.stored(), loaded, loaded.Size())
		}
		return loaded, err
	})
	archive, _ := loaded.(*render.Chart)
	return archive, err
}

// download gets the archive from the first of its URLs that has the right one.
func (c *Catalog) download(
	ctx context.Context, r *repository, pinned shipper.Chart, found index.Entry, key archiveKey,
) (*render.Chart, error) {
	if r.registry != nil {
		return c.pull(ctx, r, found.Version, key)
	}
	what := fmt.Sprintf("chart %q %s of repository %s", chart.Shorten(pinned.Name), chart.Shorten(found.Version), r.name)
	if len(found.URLs) == 0 {
		return nil, chart.BrokenSpec(nil, "%s: the index gives no URL for it", what)
	}
	digest := cmp.Or(key.digest, found.Digest)
	failure := &chart.Error{Reason: shipper.BrokenChartSpec}
	var failures []string
	var causes []error
	for _, reference := range found.URLs {
		loaded, err := c.fetchFrom(ctx, r, reference, key, digest)
		if err == nil {
			return loaded, nil
		}
		failures, causes = append(failures, err.Message), append(causes, err.Cause)
		failure.Retry = failure.Retry || err.Retry
		if err.Retry && err.Reason != shipper.BrokenChartSpec { // a URL that may only be unreachable is not called broken
			failure.Reason = err.Reason
		}
	}
	failure.Message, failure.Cause = fmt.Sprintf("%s: %s", what, strings.Join(failures, "; ")), errors.Join(causes...)
	return nil, failure
}

// find looks the pinned version up in the index, and refreshes the index if that does not have it.
func (c *Catalog) find(ctx context.Context, r *repository, pinned shipper.Chart) (index.Entry, error) {
	known, found, ok, err := c.lookUp(ctx, r, func(ix *index.Index) (index.Entry, bool) { return ix.Exact(pinned.Name, pinned.Version) })
	switch {
	case err != nil:
		failure := *chart.AsError(err)
		failure.Cause = errors.Join(failure.Cause, errIndex)
		return index.Entry{}, &failure
	case !ok:
		failure := known.noMatch(r.name, pinned.Name, index.Exactly(pinned.Version))
		// The version existed when it was admitted, or was not checked then: it may appear.
		failure.Retry, failure.Cause = true, errors.Join(chart.ErrNoMatch, errIndex)
		return index.Entry{}, failure
	}
	return found, nil
}

// fetchFrom downloads the archive from one URL and checks it.
func (c *Catalog) fetchFrom(
	ctx context.Context, r *repository, reference string, key archiveKey, digest string,
) (*render.Chart, *chart.Error) {
	u, err := join(r.url, reference)
	if err != nil {
		return nil, chart.BrokenSpec(nil, "%s", err)
	}
	var loaded *render.Chart
	_, _, err = c.fetcher.get(ctx, r.client, u, validators{}, c.options.MaxArchiveBytes, func(archive []byte) error {
		loaded, err = c.accept(archive, key, digest, outward.Redact(u))
		return err
	})
	if err != nil {
		return nil, notFetched(err, "archive "+outward.Redact(u), outward.Redact(u))
	}
	return loaded, nil
}

// pull downloads the archive of a version from a registry, by its digest.
func (c *Catalog) pull(ctx context.Context, r *repository, version string, key archiveKey) (*render.Chart, error) {
	where := r.name + ":" + tagOf(version)
	manifest, err := r.registry.manifest(ctx, version)
	if err != nil {
		return nil, notFetched(err, "chart "+where, where)
	}
	layer, digest, err := archiveOf(manifest)
	switch {
	case err != nil:
		return nil, notFetched(err, "chart "+where, where)
	case key.digest != "" && digest != key.digest:
		return nil, otherDigest(where, digest, key.digest)
	case layer.Size > c.options.MaxArchiveBytes:
		return nil, notFetched(tooLong(c.options.MaxArchiveBytes), "chart "+where, where)
	}
	body, err := r.registry.remote.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, notFetched(ofRegistry(err), "chart "+where, where)
	}
	defer body.Close()
	var loaded *render.Chart
	err = c.fetcher.whole(body, c.options.MaxArchiveBytes, func(archive []byte) error {
		loaded, err = c.accept(archive, key, digest, where)
		return err
	})
	if err != nil {
		return nil, notFetched(err, "chart "+where, where)
	}
	return loaded, nil
}

// accept opens and keeps a downloaded archive, if it has the expected digest, or if none is expected.
func (c *Catalog) accept(archive []byte, key archiveKey, digest, where string) (*render.Chart, error) {
	if got := verify.DigestOf(archive); digest != "" && got != digest {
		return nil, otherDigest(where, got, digest)
	}
	archive = slices.Clone(archive) // the fetcher owns the downloaded bytes
	opened, err := c.renders.Open(archive)
	if err != nil {
		return nil, err
	}
	c.disk.put(key, archive)
	return opened, nil
}

// otherDigest is the error of an archive with another digest. It is retried: the repository may restore the right bytes without
// notice.
func otherDigest(where, got, want string) *chart.Error {
	err := chart.BrokenSpec(chart.ErrDigest, "%s has the sha256 %s, but %s is expected", where, got, chart.Shorten(want))
	err.Retry = true
	return err
}

// notFetched turns an error of a download into the error for users.
func notFetched(err error, what, where string) *chart.Error {
	if failure, ok := errors.AsType[*chart.Error](err); ok {
		return failure
	}
	if failure, ok := errors.AsType[*chart.Unusable](err); ok {
		return chart.BrokenSpec(failure, "%s %s", where, failure)
	}
	if why, ok := errors.AsType[*outward.Denied](err); ok {
		return chart.FetchFailure(errors.Join(chart.ErrNotAllowed, why), "%s: %s", what, why)
	}
	return chart.FetchFailure(err, "download %s: %s", where, outward.Tidy(err))
}
