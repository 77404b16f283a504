// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	helmregistry "helm.sh/helm/v3/pkg/registry"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/outward"
)

// Verify returns the signature of the archive with a digest, of the exact version in pinned, for use in a namespace. It fails
// unless the signature is by the signer in pinned.Verify. It reads the provenance file and the keys each time, but a failure is
// not retried at once.
func (c *Catalog) Verify(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (shipper.ChartSignature, error) {
	if !verify.IsDigest(digest) {
		return shipper.ChartSignature{}, chart.NotVerified(chart.ErrProvenance,
			"%s cannot be verified before its archive is known: it is being fetched", describe(pinned))
	}
	if pinned.Archive != "" {
		return c.hold(ctx, namespace, pinned, digest, []byte(pinned.Provenance), "chart.provenance")
	}
	u, err := c.allowed(pinned.RepoURL)
	if err != nil {
		return shipper.ChartSignature{}, err
	}
	key := archiveKey{
		digest: digest, repo: u.String(), name: pinned.Name, version: pinned.Version, scope: opens(namespace, pinned),
	}
	who := fmt.Sprintf("verify %q", []any{namespace, pinned.Verify, key})
	flight := c.loads.DoChan(who, func() (any, error) { return c.verify(namespace, pinned, digest, archiveKey{scope: who}) })
	select {
	case <-ctx.Done():
		return shipper.ChartSignature{}, chart.FetchFailure(ctx.Err(), "the provenance of %s is still being fetched", describe(pinned))
	case result := <-flight:
		by, _ := result.Val.(shipper.ChartSignature)
		return by, result.Err
	}
}

// Verifiable returns an error if a chart cannot be verified for a reason that is known without its repository: its keys and,
// for an archive in the Application, its provenance. Without pinned.Verify it is nil.
func (c *Catalog) Verifiable(ctx context.Context, namespace string, pinned shipper.Chart, digest string) error {
	if pinned.Verify.SecretName == "" {
		return nil
	}
	if pinned.Archive != "" {
		_, err := c.Verify(ctx, namespace, pinned, digest)
		return err
	}
	_, _, err := c.keys(ctx, namespace, pinned.Verify)
	return err
}

// verify reads the provenance from the repository, unless that has just failed.
func (c *Catalog) verify(namespace string, pinned shipper.Chart, digest string, failed archiveKey) (by shipper.ChartSignature, err error) {
	failing, _ := c.broken.Get(failed)
	if failing.holds(c.options.Clock.Now()) {
		return by, failing.refusal()
	}
	ctx, cancel := context.WithTimeout(c.ctx, 2*c.options.FetchTimeout)
	defer cancel()
	by, err = c.look(ctx, namespace, pinned, digest)
	if err == nil {
		c.broken.Drop(failed)
		return by, nil
	}
	if !errors.Is(err, errIndex) {
		failing.fail(c.options.Clock.Now(), chart.AsError(err))
		c.broken.Put(failed, failing, 1)
	}
	return by, err
}

// look finds the first valid provenance beside any of the archive's URLs.
func (c *Catalog) look(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (by shipper.ChartSignature, err error) {
	r, err := c.repository(ctx, namespace, pinned)
	if err != nil {
		return by, err
	}
	found, err := c.find(ctx, r, pinned)
	if err != nil {
		return by, err
	}
	if err := c.downloads.Enter(ctx, namespace); err != nil {
		return by, chart.FetchFailure(err, "the provenance of %s waits for other charts of namespace %q that are being downloaded",
			describe(pinned), namespace)
	}
	defer c.downloads.Leave(namespace)
	var places []func(context.Context) ([]byte, string, error)
	if r.registry != nil {
		places = append(places, func(ctx context.Context) ([]byte, string, error) { return c.pullProvenance(ctx, r, found.Version) })
	}
	for _, reference := range found.URLs {
		places = append(places, func(ctx context.Context) ([]byte, string, error) { return c.fetchProvenance(ctx, r, reference) })
	}
	if len(places) == 0 {
		return by, chart.BrokenSpec(nil, "%s: the index gives no URL for it", describe(pinned))
	}
	for _, place := range places {
		var prov []byte
		var where string
		if prov, where, err = place(ctx); err == nil {
			exact := pinned
			exact.Version = found.Version
			by, err = c.hold(ctx, namespace, exact, digest, prov, where)
		}
		if err == nil {
			return by, nil
		}
	}
	return by, err
}

// hold verifies a provenance against the archive and the keys.
func (c *Catalog) hold(
	ctx context.Context, namespace string, pinned shipper.Chart, digest string, prov []byte, where string,
) (shipper.ChartSignature, error) {
	keys, secret, err := c.keys(ctx, namespace, pinned.Verify)
	if err != nil {
		return shipper.ChartSignature{}, err
	}
	if len(prov) > verify.MaxProvenanceBytes {
		return shipper.ChartSignature{}, chart.NotVerified(chart.ErrProvenance, "%s %s", where, tooLong(verify.MaxProvenanceBytes))
	}
	want := verify.Archive{Name: verify.ArchiveName(pinned.Name, pinned.Version), Digest: digest}
	by, err := verify.Provenance(prov, keys, want, c.options.Clock.Now())
	if err != nil {
		return shipper.ChartSignature{}, chart.NotVerified(chart.ErrProvenance,
			"%s has no valid signature: %s %s (the keys are those of Secret %s)", describe(pinned), where, err, secret)
	}
	return verify.SignatureOf(by, digest), nil
}

// fetchProvenance downloads the file beside an archive.
func (c *Catalog) fetchProvenance(ctx context.Context, r *repository, reference string) (prov []byte, where string, err error) {
	u, err := join(r.url, reference)
	if err != nil {
		return nil, "", chart.BrokenSpec(nil, "%s", err)
	}
	u = beside(u)
	where = outward.Redact(u)
	_, _, err = c.fetcher.get(ctx, r.client, u, validators{}, verify.MaxProvenanceBytes, func(body []byte) error {
		prov = slices.Clone(body)
		return nil
	})
	return prov, where, noProvenance(err, where)
}

// beside is the URL of the provenance of an archive.
func beside(archive *url.URL) *url.URL {
	u := *archive
	u.Path += ".prov"
	if u.RawPath != "" {
		u.RawPath += ".prov"
	}
	return &u
}

// pullProvenance downloads the layer of a version that is its provenance.
func (c *Catalog) pullProvenance(ctx context.Context, r *repository, version string) (prov []byte, where string, err error) {
	where = r.name + ":" + tagOf(version)
	manifest, err := r.registry.manifest(ctx, version)
	if err != nil {
		return nil, where, notFetched(err, "chart "+where, where)
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != helmregistry.ProvLayerMediaType {
			continue
		}
		if layer.Size > verify.MaxProvenanceBytes {
			return nil, where, noProvenance(tooLong(verify.MaxProvenanceBytes), "the provenance of "+where)
		}
		body, err := r.registry.remote.Blobs().Fetch(ctx, layer)
		if err != nil {
			return nil, where, noProvenance(ofRegistry(err), where)
		}
		defer body.Close()
		err = c.fetcher.whole(body, verify.MaxProvenanceBytes, func(text []byte) error {
			prov = slices.Clone(text)
			return nil
		})
		return prov, where, noProvenance(err, where)
	}
	return nil, where, noProvenance(&chart.Unusable{Err: errors.New("has no layer of the type " + helmregistry.ProvLayerMediaType)}, where)
}

// noProvenance turns an error of the download of a provenance into the error for users.
func noProvenance(err error, where string) error {
	const sign = "; a chart that is signed (`helm package --sign`) has its .prov file published with it"
	if err == nil {
		return nil
	}
	if status, ok := errors.AsType[statusError](err); ok && !status.temporary() {
		return chart.NotVerified(chart.ErrProvenance, "there is no provenance at %s: %s%s", where, status, sign)
	}
	if failure, ok := errors.AsType[*chart.Unusable](err); ok {
		return chart.NotVerified(chart.ErrProvenance, "%s %s%s", where, strings.TrimSpace(failure.Error()), sign)
	}
	return notFetched(err, "provenance "+where, where)
}

// describe names a chart in messages.
func describe(c shipper.Chart) string {
	return fmt.Sprintf("chart %q %s", chart.Shorten(c.Name), chart.Shorten(c.Version))
}
