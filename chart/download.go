// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// downloadsEach is how many archives and provenances one namespace downloads and opens at one time: one that names many large ones, or
// many of a repository that answers slowly, leaves room to the others in maxInFlight. What others do counts for nothing, or a few
// repositories that hang would keep all from theirs. The index was read before: that belongs to all who ask for it.
const downloadsEach = 4

// errIndex marks failures that are the index's, which has a backoff of its own.
var errIndex = errors.New("index")

// fetch finds the archive in the index and downloads it, in the turn of its namespace. Namespaces whose turn it is share a download; none
// waits for the turn of another.
func (c *Catalog) fetch(namespace string, pinned shipper.Chart, key archiveKey) (*Chart, error) {
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
		return nil, fetchFailure(err, "chart %q %s of repository %s waits for others of namespace %q that are being downloaded",
			shorten(pinned.Name), shorten(found.version), r.name, namespace)
	}
	defer c.downloads.Leave(namespace)
	loaded, err, _ := c.loads.Do(fmt.Sprintf("download %q", key), func() (any, error) {
		if loaded, ok := c.charts.get(key.stored()); ok { // while it was waited for
			return loaded, nil
		}
		loaded, err := c.download(ctx, r, pinned, found, key)
		if err == nil {
			c.charts.put(key.stored(), loaded, loaded.size)
		}
		return loaded, err
	})
	archive, _ := loaded.(*Chart)
	return archive, err
}

// download gets the archive from the first of its URLs that gives the right one.
func (c *Catalog) download(ctx context.Context, r *repository, pinned shipper.Chart, found entry, key archiveKey) (*Chart, error) {
	if r.registry != nil {
		return c.pull(ctx, r, found.version, key)
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
		loaded, err := c.fetchFrom(ctx, r, reference, key, digest)
		if err == nil {
			return loaded, nil
		}
		failures, causes = append(failures, err.Message), append(causes, err.Cause)
		told.Retry = told.Retry || err.Retry
		if err.Retry && err.Reason != shipper.BrokenChartSpec { // what may only be out of reach is not called broken
			told.Reason = err.Reason
		}
	}
	told.Message, told.Cause = fmt.Sprintf("%s: %s", what, strings.Join(failures, "; ")), errors.Join(causes...)
	return nil, told
}

// find looks the pinned version up in the index, which is asked for anew when it does not have it.
func (c *Catalog) find(ctx context.Context, r *repository, pinned shipper.Chart) (entry, error) {
	known, found, ok, err := c.lookUp(ctx, r, func(ix *index) (entry, bool) { return ix.exact(pinned.Name, pinned.Version) })
	switch {
	case err != nil:
		told := *asError(err)
		told.Cause = errors.Join(told.Cause, errIndex)
		return entry{}, &told
	case !ok:
		told := known.noMatch(r.name, pinned.Name, constraint{raw: pinned.Version, build: true})
		// It was there when it was admitted, or nobody could look: it may come.
		told.Retry, told.Cause = true, errors.Join(ErrNoMatch, errIndex)
		return entry{}, told
	}
	return found, nil
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
	ctx context.Context, r *repository, reference string, key archiveKey, digest string,
) (*Chart, *Error) {
	u, err := join(r.url, reference)
	if err != nil {
		return nil, brokenSpec(nil, "%s", err)
	}
	var loaded *Chart
	_, _, err = c.fetcher.get(ctx, r.client, u, validators{}, c.options.MaxArchiveBytes, func(archive []byte) error {
		loaded, err = c.accept(archive, key, digest, redact(u))
		return err
	})
	if err != nil {
		return nil, notFetched(err, "archive "+redact(u), redact(u))
	}
	return loaded, nil
}

// pull downloads the archive of a version from a registry. Its digest is known before it is asked for.
func (c *Catalog) pull(ctx context.Context, r *repository, version string, key archiveKey) (*Chart, error) {
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
	var loaded *Chart
	err = c.fetcher.whole(body, c.options.MaxArchiveBytes, func(archive []byte) error {
		loaded, err = c.accept(archive, key, digest, where)
		return err
	})
	if err != nil {
		return nil, notFetched(err, "chart "+where, where)
	}
	return loaded, nil
}

// accept opens and keeps an archive that was downloaded, if it has the digest that is expected, if any is.
func (c *Catalog) accept(archive []byte, key archiveKey, digest, where string) (*Chart, error) {
	if got := digestOf(archive); digest != "" && got != digest {
		return nil, otherDigest(where, got, digest)
	}
	archive = slices.Clone(archive) // what was downloaded is the fetcher's
	opened, err := open(archive, c.renders)
	if err != nil {
		return nil, err
	}
	c.disk.put(key, archive)
	return opened, nil
}

// otherDigest says that something else was published. It is asked for again: nobody here is told when the repository has the
// right bytes again.
func otherDigest(where, got, want string) *Error {
	err := brokenSpec(ErrDigest, "%s has the sha256 %s, but %s is expected", where, got, shorten(want))
	err.Retry = true
	return err
}

// notFetched turns what went wrong with a download into what is told.
func notFetched(err error, what, where string) *Error {
	if told, ok := errors.AsType[*Error](err); ok {
		return told
	}
	if told, ok := errors.AsType[*unusable](err); ok {
		return brokenSpec(told, "%s %s", where, told)
	}
	if why, ok := errors.AsType[*denied](err); ok {
		return fetchFailure(errors.Join(ErrNotAllowed, why), "%s: %s", what, why)
	}
	return fetchFailure(err, "download %s: %s", where, tidy(err))
}
