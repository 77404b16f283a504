// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shipper.dev/shipper/outward"
)

// Fault is a way in which a Repository can be broken.
type Fault string

// Faults.
const (
	// Healthy is no fault.
	Healthy Fault = ""
	// Missing answers 404 to everything.
	Missing Fault = "missing"
	// Gone answers 410 to everything.
	Gone Fault = "gone"
	// Unavailable answers 503 to everything.
	Unavailable Fault = "unavailable"
	// Stalled answers nothing until the repository is healed or the client leaves.
	Stalled Fault = "stalled"
	// StalledArchives serves the index, and archives as Stalled does.
	StalledArchives Fault = "stalled archives"
	// EmptyIndex serves an index without charts.
	EmptyIndex Fault = "empty index"
	// EmptyFile serves an index of no bytes.
	EmptyFile Fault = "empty file"
	// HugeIndex serves an index of 80 MiB.
	HugeIndex Fault = "huge index"
	// NotYAML serves an index that cannot be parsed.
	NotYAML Fault = "not YAML"
	// HTML serves a page where the index should be.
	HTML Fault = "HTML"
	// CorruptArchives serves archives with one byte changed.
	CorruptArchives Fault = "corrupt archives"
	// NoArchives serves the index, and 404 for the archives in it.
	NoArchives Fault = "no archives"
)

// Repository serves charts on 127.0.0.1.
type Repository struct {
	// URL is the repoUrl to use.
	URL string

	server   *http.Server
	listener net.Listener

	mu       sync.Mutex
	archives []Archive
	// provenances are .prov files by the names that they have beside the archives.
	provenances map[string][]byte
	fault       Fault
	// healed is closed when the fault ends.
	healed    chan struct{}
	noDigests bool
	requests  []string
	answers   map[int]int
}

// URLs are those of repositories of this package, as `--chart-repositories` takes them.
const URLs = "http://127.0.0.1:*"

// Flag has Shipper's binaries fetch from repositories of this package, too.
const Flag = "--chart-repositories=" + outward.AnyHTTPS + "," + URLs

// Policy allows URLs.
func Policy(t testing.TB) outward.Policy {
	t.Helper()
	p, err := outward.ParsePolicy(URLs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Serve starts a repository of all charts that ends with the test.
func Serve(t testing.TB) *Repository {
	t.Helper()
	r, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// Start starts a repository of all charts on a free port.
func Start() (*Repository, error) { return StartAt("127.0.0.1:0") }

// StartAt starts a repository of all charts at an address.
func StartAt(address string) (*Repository, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting a chart repository: %w", err)
	}
	r := &Repository{
		URL: "http://" + listener.Addr().String() + "/charts", listener: listener,
		archives: all, healed: make(chan struct{}), answers: map[int]int{},
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Close stops the repository at once.
func (r *Repository) Close() {
	r.Heal()
	// The listener too, for the server does not know it before it has begun to serve.
	_, _ = r.server.Close(), r.listener.Close()
}

// Break gives the repository a fault, in place of any it had.
func (r *Repository) Break(fault Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.healed)
	r.healed = make(chan struct{})
	r.fault = fault
}

// Heal takes the fault away.
func (r *Repository) Heal() { r.Break(Healthy) }

// Publish adds an archive to the index, in place of one of the same name and version: a request finds the one or the other.
func (r *Repository) Publish(archive Archive) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(archive.Name, archive.Version)
	r.archives = append(r.archives, archive)
}

// PublishProvenance puts a .prov file beside the archive of a version, in place of one that is there; nil takes it away.
func (r *Repository) PublishProvenance(name, version string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.provenances == nil {
		r.provenances = map[string][]byte{}
	}
	r.provenances[name+"-"+version+".tgz.prov"] = text
}

// Withdraw takes a version out of the index; with an empty version all of the chart.
func (r *Repository) Withdraw(name, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.withdraw(name, version)
}

func (r *Repository) withdraw(name, version string) {
	r.archives = slices.DeleteFunc(slices.Clone(r.archives), func(a Archive) bool {
		return a.Name == name && (version == "" || a.Version == version)
	})
}

// ForgetDigests makes the index give no digests.
func (r *Repository) ForgetDigests() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noDigests = true
}

// Requests counts the requests so far whose path ends in suffix.
func (r *Repository) Requests(suffix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, path := range r.requests {
		if strings.HasSuffix(path, suffix) {
			n++
		}
	}
	return n
}

// Answers counts the answers so far with an HTTP status.
func (r *Repository) Answers(status int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[status]
}

// ServeHTTP answers as a repository would, or as its fault has it.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, request.URL.Path)
	fault, healed := r.fault, r.healed
	r.mu.Unlock()
	if fault == Stalled || fault == StalledArchives && !strings.HasSuffix(request.URL.Path, "/index.yaml") {
		select {
		case <-healed:
		case <-request.Context().Done():
			return
		}
	}
	status, body := r.answer(request.URL.Path, fault)
	if status == http.StatusOK {
		sum := sha256.Sum256(body)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		w.Header().Set("ETag", tag)
		if request.Header.Get("If-None-Match") == tag {
			status, body = http.StatusNotModified, nil
		}
	}
	r.mu.Lock()
	r.answers[status]++
	r.mu.Unlock()
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// answer finds what lies under a path.
func (r *Repository) answer(path string, fault Fault) (status int, body []byte) {
	switch fault {
	case Missing:
		return http.StatusNotFound, nil
	case Gone:
		return http.StatusGone, nil
	case Unavailable:
		return http.StatusServiceUnavailable, nil
	}
	file, ok := strings.CutPrefix(path, "/charts/")
	if !ok {
		return http.StatusNotFound, nil
	}
	if file == "index.yaml" {
		return http.StatusOK, r.index(fault)
	}
	content, err := r.archive(file)
	if err != nil || fault == NoArchives {
		return http.StatusNotFound, nil
	}
	if fault == CorruptArchives {
		content = slices.Clone(content)
		content[len(content)/2] ^= 0xff
	}
	return http.StatusOK, content
}

// archive finds an archive, or a .prov file, by its file's name.
func (r *Repository) archive(file string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := r.provenances[file]; text != nil {
		return text, nil
	}
	for _, a := range r.archives {
		if file == a.Name+"-"+a.Version+".tgz" {
			return a.Bytes, nil
		}
	}
	return nil, errors.New("no such archive")
}

// index writes the index.
func (r *Repository) index(fault Fault) []byte {
	switch fault {
	case EmptyIndex:
		return []byte("apiVersion: v1\nentries: {}\n")
	case EmptyFile:
		return nil
	case NotYAML:
		return []byte("apiVersion: v1: v1\n\tentries\n")
	case HTML:
		return []byte("<!DOCTYPE html>\n<html><body>Welcome</body></html>\n")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n")
	byName := slices.Clone(r.archives)
	slices.SortStableFunc(byName, func(a, b Archive) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range byName {
		if i == 0 || byName[i-1].Name != a.Name {
			fmt.Fprintf(&b, "  %s:\n", a.Name)
		}
		fmt.Fprintf(&b, "  - apiVersion: v1\n    name: %s\n    urls:\n    - %s-%s.tgz\n    version: %s\n",
			a.Name, a.Name, a.Version, a.Version)
		if !r.noDigests {
			fmt.Fprintf(&b, "    digest: %s\n", a.Digest)
		}
	}
	if fault == HugeIndex {
		line := "# " + strings.Repeat("huge ", 200) + "\n"
		b.WriteString(strings.Repeat(line, 80<<20/len(line)))
	}
	return []byte(b.String())
}
