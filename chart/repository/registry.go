// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/outward"
)

const (
	ociScheme = helmregistry.OCIScheme
	// maxManifest bounds, in bytes, the manifest of a chart. Helm's have less than 2 KiB.
	maxManifest = 1 << 20
	// maxTagPages bounds the pages in which a registry lists the tags of a chart.
	maxTagPages = 1000
	// maxNoted bounds the versions of one chart whose digest is cached.
	maxNoted = 256
)

// registry is one chart in an OCI registry: its tags are its versions. It uses the library below Helm's own client, because
// that client cannot be cancelled or bounded, and reads the credentials of the process's user.
type registry struct {
	remote *remote.Repository
	chart  string

	mu    sync.Mutex
	noted map[string]noted
}

// noted is the digest of a version's archive at a time.
type noted struct {
	digest string
	at     time.Time
}

// newRegistry is the chart of a name below u, an oci URL that the policy allows.
func (f *fetcher) newRegistry(u *url.URL, name string, a *access) (*registry, error) {
	plain, err := checkRegistry(f.policy, u)
	if err != nil {
		return nil, err
	}
	repository, err := remote.NewRepository(u.Host + u.Path + "/" + name)
	if err != nil || strings.ContainsAny(name, "/:@") {
		return nil, chart.BrokenSpec(chart.ErrNoChart, "chart %q cannot be in an OCI registry: names there are of small letters, digits, "+
			"and . _ - between them", chart.Shorten(name))
	}
	own := url.URL{Scheme: "https", Host: repository.Reference.Host()}
	if plain {
		own.Scheme = "http"
	}
	repository.PlainHTTP, repository.TagListMaxPages = plain, maxTagPages
	client := &auth.Client{Client: f.ofRegistry(&own, a), Cache: auth.NewCache()}
	client.SetUserAgent(userAgent)
	if a != nil {
		client.Credential = func(_ context.Context, host string) (auth.Credential, error) {
			if host != own.Host {
				return auth.EmptyCredential, nil
			}
			return auth.Credential{Username: a.username, Password: a.password, AccessToken: a.token}, nil
		}
	}
	repository.Client = client
	return &registry{remote: repository, chart: name, noted: map[string]noted{}}, nil
}

// list makes an index of the tags. A `+`, which tags cannot have, is a `_` in them.
func (g *registry) list(ctx context.Context) (*index.Index, error) {
	var found []string
	err := g.remote.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			version := strings.ReplaceAll(tag, "_", "+")
			// A tag such as 20260101 or 1.2 may not be a version: versions of charts have three parts.
			if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
				found = append(found, version)
			}
		}
		if len(found) > index.MaxEntries {
			return &chart.Unusable{Err: fmt.Errorf("lists more than the %d versions that are accepted", index.MaxEntries)}
		}
		return nil
	})
	if failure, ok := errors.AsType[*errcode.ErrorResponse](err); ok && slices.ContainsFunc(failure.Errors, unknownName) {
		return &index.Index{}, nil
	}
	if err != nil {
		return nil, ofRegistry(err)
	}
	return index.OfVersions(g.chart, found), nil
}

func unknownName(e errcode.Error) bool { return e.Code == errcode.ErrorCodeNameUnknown }

// manifest reads the manifest of a version.
func (g *registry) manifest(ctx context.Context, version string) (*ocispec.Manifest, error) {
	described, body, err := g.remote.Manifests().FetchReference(ctx, tagOf(version))
	if err != nil {
		return nil, ofRegistry(err)
	}
	defer body.Close()
	if described.Size > maxManifest {
		return nil, tooLong(maxManifest)
	}
	text, err := content.ReadAll(body, described)
	if err != nil {
		return nil, ofRegistry(err)
	}
	var out ocispec.Manifest
	if err := json.Unmarshal(text, &out); err != nil || out.Config.MediaType != helmregistry.ConfigMediaType {
		return nil, &chart.Unusable{Err: errors.New("is not a Helm chart")}
	}
	return &out, nil
}

// tagOf is the tag of a version.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// archiveOf is the layer of a manifest that is the chart's archive. Its digest is that of the archive.
func archiveOf(m *ocispec.Manifest) (ocispec.Descriptor, string, error) {
	for _, layer := range m.Layers {
		if layer.MediaType != helmregistry.ChartLayerMediaType && layer.MediaType != helmregistry.LegacyChartLayerMediaType {
			continue
		}
		digest, found := strings.CutPrefix(string(layer.Digest), "sha256:")
		if !found || !verify.IsDigest(digest) {
			return layer, "", &chart.Unusable{Err: errors.New("has an archive without a sha256")}
		}
		return layer, digest, nil
	}
	return ocispec.Descriptor{}, "", &chart.Unusable{Err: errors.New("is a Helm chart without an archive")}
}

// digest reads the digest of a version's archive, unless that was just done.
func (g *registry) digest(ctx context.Context, version string, now time.Time, fresh time.Duration) (string, error) {
	g.mu.Lock()
	known, ok := g.noted[version]
	g.mu.Unlock()
	if ok && now.Sub(known.at) < fresh {
		return known.digest, nil
	}
	manifest, err := g.manifest(ctx, version)
	if err != nil {
		return "", err
	}
	_, digest, err := archiveOf(manifest)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.noted) >= maxNoted {
		clear(g.noted)
	}
	g.noted[version] = noted{digest, now}
	return digest, nil
}

// ofRegistry removes from an error of the registry's client what it quotes: URLs that may be signed, and the server's text.
func ofRegistry(err error) error {
	if failure, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return statusError(failure.StatusCode)
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return statusError(http.StatusUnauthorized)
	}
	if errors.Is(err, errNotThere) {
		return statusError(http.StatusNotFound)
	}
	if own, ok := errors.AsType[*chart.Unusable](err); ok {
		return own
	}
	if why, ok := errors.AsType[*outward.Denied](err); ok {
		return why
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return outward.Tidy(wrapped)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return outward.Tidy(fmt.Errorf("%w: %w", errBrokenOff, err))
	}
	return &chart.Unusable{Err: errors.New("does not answer as an OCI registry does")}
}
