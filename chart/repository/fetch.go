// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/outward"
)

// ociPath matches the path of an OCI registry's URL, with or without a slash at its end.
var ociPath = regexp.MustCompile(`^(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$`)

const (
	// maxInFlight bounds the bytes of all downloads that are in progress or being parsed.
	maxInFlight = 256 << 20
	userAgent   = "shipper"
)

// errBusy means that too many large downloads are in progress.
var errBusy = errors.New("too much is being downloaded at the moment")

// statusError is an HTTP status other than 200 and 304.
type statusError int

// Error names the status.
func (s statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the answer is %d %s", int(s), http.StatusText(int(s))))
}

// temporary reports whether a later request may have another status.
func (s statusError) temporary() bool {
	return s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout
}

// validators make a request conditional: the ETag and the date of the last response.
type validators struct {
	etag, modified string
}

// fetcher downloads over http and https. It bounds each download and all of them together.
type fetcher struct {
	policy   outward.Policy
	client   *http.Client
	inFlight atomic.Int64
}

func newFetcher(policy outward.Policy, transport http.RoundTripper) *fetcher {
	policy = policy.Worded(wording)
	if transport == nil {
		transport = outward.NewTransport(policy)
	}
	return &fetcher{policy: policy, client: &http.Client{Transport: transport, CheckRedirect: policy.Redirect}}
}

// get downloads u with client and passes the body to use, which must not keep it. It returns the validators of the response; if
// the server confirms the caller's validators, changed is false and use is not called.
func (f *fetcher) get(
	ctx context.Context, client *http.Client, u *url.URL, known validators, limit int64, use func([]byte) error,
) (got validators, changed bool, err error) {
	if err := f.policy.Check(u); err != nil {
		return known, false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return known, false, errors.New("the URL cannot be asked for")
	}
	request.Header.Set("User-Agent", userAgent)
	if known.etag != "" {
		request.Header.Set("If-None-Match", known.etag)
	}
	if known.modified != "" {
		request.Header.Set("If-Modified-Since", known.modified)
	}
	if strings.HasSuffix(u.Path, ".tgz") {
		// Otherwise a server may treat the archive's gzip as a transfer encoding, and the client would decompress it.
		request.Header.Set("Accept-Encoding", "identity")
	}
	response, err := client.Do(request)
	if err != nil {
		return known, false, outward.Tidy(err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotModified && known != (validators{}):
		return known, false, nil
	case response.StatusCode != http.StatusOK:
		return known, false, statusError(response.StatusCode)
	case response.ContentLength > limit:
		return known, false, tooLong(limit)
	}
	got = validators{etag: response.Header.Get("ETag"), modified: response.Header.Get("Last-Modified")}
	err = f.whole(response.Body, limit, use)
	if early, ok := errors.AsType[*cutShort](err); ok {
		return known, false, outward.Tidy(early.err)
	}
	return got, true, err
}

// cutShort is the error of a response that could not be read to its end.
type cutShort struct{ err error }

// Error says why.
func (c *cutShort) Error() string { return c.err.Error() }

// Unwrap returns why.
func (c *cutShort) Unwrap() error { return c.err }

// whole reads a response to its end and passes it to use, which must not keep it. It fails with cutShort or as use does.
func (f *fetcher) whole(from io.Reader, limit int64, use func([]byte) error) error {
	var body bytes.Buffer
	defer func() { f.inFlight.Add(-int64(body.Len())) }()
	if err := f.read(&body, from, limit); err != nil {
		return &cutShort{err}
	}
	return use(body.Bytes())
}

// read fills body; its bytes count in inFlight until the caller subtracts them.
func (f *fetcher) read(body *bytes.Buffer, from io.Reader, limit int64) error {
	for {
		n, err := io.CopyN(body, from, min(1<<20, limit+1-int64(body.Len())))
		switch held := f.inFlight.Add(n); {
		case int64(body.Len()) > limit:
			return tooLong(limit)
		case held > maxInFlight:
			return errBusy
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func tooLong(limit int64) error {
	return &chart.Unusable{Err: fmt.Errorf("is larger than the %s that are accepted", chart.Mebibytes(limit))}
}

// parseRepository parses a repoUrl: http, https or oci, with a host.
func parseRepository(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, chart.BrokenSpec(chart.ErrNotRepository, "repoUrl is not a URL")
	}
	if (u.Scheme != "http" && u.Scheme != "https" && u.Scheme != ociScheme) || u.Host == "" {
		return nil, chart.BrokenSpec(chart.ErrNotRepository, "repoUrl %s is not an http, https or oci URL of a chart repository",
			outward.Redact(u))
	}
	if u.Scheme == ociScheme && (u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" && !ociPath.MatchString(u.Path)) {
		return nil, chart.BrokenSpec(chart.ErrNotRepository, "repoUrl %s must be oci://host/path, as `helm push` takes it: "+
			"with neither credentials, query, tag nor capital letters", outward.Redact(u))
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// join resolves an archive's URL from an index. Relative URLs, and those of the same server, use the credentials of the
// repository.
func join(repository *url.URL, reference string) (*url.URL, error) {
	ref, err := url.Parse(strings.TrimSpace(reference))
	if err != nil {
		return nil, errors.New("a URL in the index cannot be read")
	}
	folder := *repository
	folder.Path += "/"
	if folder.RawPath != "" {
		folder.RawPath += "/"
	}
	u := folder.ResolveReference(ref)
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: only http and https are supported", outward.Redact(u))
	}
	if u.Scheme == repository.Scheme && u.Host == repository.Host {
		if u.User == nil {
			u.User = repository.User
		}
		if u.RawQuery == "" {
			u.RawQuery = repository.RawQuery
		}
	}
	return u, nil
}
