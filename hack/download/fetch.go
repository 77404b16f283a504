// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxSize bounds a downloaded file and an unpacked program, in bytes.
const maxSize = 1 << 30

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

var (
	// errSilent means that a host did not answer in time.
	errSilent    = errors.New("did not answer")
	errInsecure  = errors.New("redirects from HTTPS")
	errRedirects = errors.New("redirects too often")
)

// downloader downloads programs into a folder.
type downloader struct {
	out, mirror string
	silent      string // folder with a file for each host that did not answer; empty: nothing is remembered
	required    bool

	answer, stall, longest time.Duration
	client                 *http.Client
	now                    func() time.Time

	mu       sync.Mutex // for progress
	progress io.Writer

	read, expected, done atomic.Int64 // bytes, bytes, programs
}

func newDownloader(out, mirror string, progress io.Writer) *downloader {
	return &downloader{
		out: out, mirror: strings.TrimSuffix(mirror, "/"), progress: progress,
		answer: answerTimeout, stall: stallTimeout, longest: downloadTimeout, client: newClient(), now: time.Now,
	}
}

// newClient makes a client that takes files as they are, and follows no redirect from HTTPS to HTTP.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.DisableCompression = true                          // the digest is that of the file as it was published
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		switch last := before[len(before)-1].URL; {
		case last.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("%w to %s", errInsecure, next.URL.Redacted())
		case len(before) >= maxRedirects:
			return errRedirects
		}
		return nil
	}}
}

// say reports something.
func (d *downloader) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.progress, "download: "+format+"\n", args...)
}

// programs downloads all files at the same time. It returns the names of the programs that are in the folder then.
func (d *downloader) programs(ctx context.Context, files []file) ([]string, error) {
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the programs: %w", err)
	}
	began := d.now()
	digests, causes := d.digests(ctx, files)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var downloads sync.WaitGroup
	for i, f := range files {
		if causes[i] != nil {
			continue
		}
		downloads.Go(func() {
			if causes[i] = d.program(ctx, f, digests[i]); causes[i] == nil {
				d.done.Add(1)
				d.say("got %s %s in %.0f s; its digest is the published one", f.program, f.version, d.now().Sub(began).Seconds())
			}
		})
	}
	ended := make(chan struct{})
	go func() { downloads.Wait(); close(ended) }()
	d.report(ended, began, len(files))
	obtained, missing := d.sort(files, causes)
	if d.required && len(missing) > 0 {
		return obtained, fmt.Errorf("not downloaded: %s", strings.Join(missing, ", "))
	}
	return obtained, ctx.Err()
}

// sort divides the names of the programs by whether there is a cause why they are missing, and reports each cause once.
func (d *downloader) sort(files []file, causes []error) (obtained, missing []string) {
	var order []string
	programs := map[string][]string{} // by cause
	for i, f := range files {
		if causes[i] == nil {
			obtained = append(obtained, f.program)
			continue
		}
		cause := causes[i].Error()
		if programs[cause] == nil {
			order = append(order, cause)
		}
		programs[cause] = append(programs[cause], f.program)
		missing = append(missing, f.program)
	}
	for _, cause := range order {
		d.say("cannot download %s: %s", strings.Join(programs[cause], ", "), cause)
	}
	return obtained, missing
}

// report says every few seconds how far the downloads are.
func (d *downloader) report(ended <-chan struct{}, began time.Time, programs int) {
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			d.say("%d of %d programs, %d of %d MB, %.0f s", d.done.Load(), programs, d.read.Load()/1e6, d.expected.Load()/1e6,
				d.now().Sub(began).Seconds())
		}
	}
}

// digests requests the published digests of all files, within the time that a host has to answer. It returns for each file either
// its digest or why it has none.
func (d *downloader) digests(ctx context.Context, files []file) (digests []string, causes []error) {
	digests, causes = make([]string, len(files)), make([]error, len(files))
	ctx, cancel := context.WithTimeout(ctx, d.answer)
	defer cancel()
	var requests sync.WaitGroup
	for i, f := range files {
		if f.unpublished != "" {
			causes[i] = errors.New(f.unpublished)
			continue
		}
		if since := d.silentSince(f.digests); !since.IsZero() {
			causes[i] = fmt.Errorf("%s %w %.0f s ago", d.host(f.digests), errSilent, d.now().Sub(since).Seconds())
			continue
		}
		requests.Go(func() { digests[i], causes[i] = d.published(ctx, f) })
	}
	requests.Wait()
	answered := map[string]bool{}
	for i, f := range files {
		answered[d.host(f.digests)] = answered[d.host(f.digests)] || f.unpublished == "" && !errors.Is(causes[i], errSilent)
	}
	for i, f := range files {
		if errors.Is(causes[i], errSilent) && !answered[d.host(f.digests)] && d.silentSince(f.digests).IsZero() {
			d.remember(f.digests)
		}
	}
	return digests, causes
}

// published requests the digest of a file.
func (d *downloader) published(ctx context.Context, f file) (string, error) {
	response, err := d.get(ctx, f.digests)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 8<<20))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("%s %w within %v", d.host(f.digests), errSilent, d.answer)
	}
	if err != nil {
		return "", fmt.Errorf("reading the digest: %w", err)
	}
	return f.digest(text, f.name())
}

// get requests an address, or that of the mirror. An error that wraps errSilent means that no host answered.
func (d *downloader) get(ctx context.Context, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.mirrored(address), nil)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", address, err)
	}
	response, err := d.client.Do(request)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s %w within %v", d.host(address), errSilent, d.answer)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // without the address, so that files of one host have the same cause
		}
		if errors.Is(err, errInsecure) || errors.Is(err, errRedirects) {
			return nil, fmt.Errorf("%s %w", d.host(address), err)
		}
		return nil, fmt.Errorf("%s %w: %w", d.host(address), errSilent, err)
	case response.StatusCode != http.StatusOK:
		response.Body.Close()
		return nil, fmt.Errorf("%s answered %d %s", request.URL.Redacted(), response.StatusCode, http.StatusText(response.StatusCode))
	}
	return response, nil
}

// mirrored is the address at the mirror, if there is one.
func (d *downloader) mirrored(address string) string {
	if d.mirror == "" {
		return address
	}
	return d.mirror + "/" + strings.TrimPrefix(address, "https://")
}

// program downloads a file, checks it, and gives the program in it its name.
func (d *downloader) program(ctx context.Context, f file, digest string) error {
	temporary, err := os.CreateTemp(d.out, ".download-")
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it is renamed, when all is well
	defer temporary.Close()
	if err := d.download(ctx, f, digest, temporary); err != nil {
		return err
	}
	program := temporary
	if f.member != "" {
		if program, err = os.CreateTemp(d.out, ".download-"); err != nil {
			return fmt.Errorf("making a file: %w", err)
		}
		defer os.Remove(program.Name()) //nolint:errcheck // it is renamed, when all is well
		defer program.Close()
		if err := extract(temporary, f.name(), f.member, program); err != nil {
			return err
		}
	}
	if err := errors.Join(program.Chmod(0o755), program.Close()); err != nil {
		return fmt.Errorf("writing the program: %w", err)
	}
	if err := os.Rename(program.Name(), filepath.Join(d.out, f.program)); err != nil {
		return fmt.Errorf("naming the program: %w", err)
	}
	return nil
}

// download writes a file whose digest is the given one.
func (d *downloader) download(ctx context.Context, f file, digest string, to io.Writer) error {
	ctx, end := context.WithTimeoutCause(ctx, d.longest, fmt.Errorf("%s has not sent all of %s within %v", d.host(f.url), f.name(), d.longest))
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := fmt.Errorf("%s has sent nothing for %v", d.host(f.url), d.stall)
	stall := time.AfterFunc(d.stall, func() { cancel(stalled) })
	defer stall.Stop()
	response, err := d.get(ctx, f.url)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	d.expected.Add(max(response.ContentLength, 0))
	hash := sha256.New()
	body := &watched{from: io.LimitReader(response.Body, maxSize), each: func(n int) {
		stall.Reset(d.stall)
		d.read.Add(int64(n))
	}}
	if _, err := io.Copy(io.MultiWriter(to, hash), body); err != nil {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("downloading %s from %s: %w", f.name(), d.host(f.url), err))
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != digest {
		return fmt.Errorf("the SHA-256 digest of %s is %s, published is %s", f.name(), got, digest)
	}
	return nil
}

// watched is a reader that reports what it reads.
type watched struct {
	from io.Reader
	each func(n int)
}

// Read reads, and reports how much it has read.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.each(n)
	}
	return n, err
}

// host is the host that is asked for an address.
func (d *downloader) host(address string) string {
	u, err := url.Parse(d.mirrored(address))
	if err != nil {
		return address
	}
	return u.Host
}

// silentSince returns when the host of an address did not answer, or zero if that is too long ago or must not be known.
func (d *downloader) silentSince(address string) time.Time {
	if d.silent == "" || d.required {
		return time.Time{}
	}
	info, err := os.Stat(d.memory(address))
	if err != nil || d.now().Sub(info.ModTime()) > retryInterval {
		return time.Time{}
	}
	return info.ModTime()
}

// remember remembers that the host of an address did not answer. Not to be able to costs a few seconds the next time, no more.
func (d *downloader) remember(address string) {
	if d.silent == "" {
		return
	}
	if err := os.MkdirAll(d.silent, 0o755); err == nil {
		_ = os.Remove(d.memory(address))
		_ = os.WriteFile(d.memory(address), nil, 0o644)
	}
}

// memory is the file that remembers the host of an address.
func (d *downloader) memory(address string) string {
	return filepath.Join(d.silent, "host-"+url.PathEscape(d.host(address)))
}
