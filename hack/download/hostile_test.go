// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// refused downloads a program, and expects it to be missing for a reason.
func refused(t *testing.T, d *downloader, program, says string, progress *bytes.Buffer) {
	t.Helper()
	if _, err := d.programs(t.Context(), files(t, "linux/amd64", program)); err != nil {
		t.Fatal(err)
	}
	if got := inFolder(t, d.out); len(got) > 0 || !strings.Contains(progress.String(), says) {
		t.Errorf("%d programs, progress %q does not have %q", len(got), progress, says)
	}
}

func TestAMirrorHasAnAddress(t *testing.T) {
	t.Parallel()
	for mirror, ok := range map[string]bool{
		"": true, "http://127.0.0.1:8080": true, "https://user:secret@mirror.example/releases": true,
		"mirror.example": false, "mirror:8080": false, "http://": false, "ftp://mirror.example": false, "https://user:secret@:x": false,
	} {
		if err := checkMirror(mirror); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", mirror, err)
		}
	}
}

func TestPasswordsOfMirrorsAreNotPrinted(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	var progress bytes.Buffer
	d := patient(t, strings.Replace(server.URL, "://", "://user:secret@", 1), &progress)
	refused(t, d, "kubectl@v1.37.1", "answered 404 Not Found", &progress)
	if strings.Contains(progress.String(), "secret") {
		t.Errorf("the password is printed: %s", &progress)
	}
}

func TestNoRedirectLeavesHTTPS(t *testing.T) {
	t.Parallel()
	plain := serve(t, published(t, "linux/amd64"))
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	var progress bytes.Buffer
	d := patient(t, secure.URL+"/mirror", &progress)
	d.client.Transport, d.silent = secure.Client().Transport, t.TempDir()
	refused(t, d, "kubectl@v1.37.1", "redirects from HTTPS to http://", &progress)
	if entries, err := os.ReadDir(d.silent); err != nil || len(entries) > 0 {
		t.Errorf("a host that answered counts as one that does not: %v %v", entries, err)
	}
}

// TestADownloadEndsThatNeverStalls has a server that sends a byte at a time until the client is gone.
func TestADownloadEndsThatNeverStalls(t *testing.T) {
	t.Parallel()
	proper := serve(t, published(t, "linux/amd64"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			proper.Config.Handler.ServeHTTP(w, r)
			return
		}
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "#")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(server.Close)
	var progress bytes.Buffer
	d := patient(t, server.URL+"/mirror", &progress)
	d.longest = 200 * time.Millisecond
	refused(t, d, "kubectl@v1.37.1", "has not sent all of kubectl within 200ms", &progress)
}

func TestAHostThatAnsweredOnceIsNoSilentOne(t *testing.T) {
	t.Parallel()
	proper := serve(t, published(t, "linux/amd64"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/kubectl.sha256") {
			panic(http.ErrAbortHandler) // the connection is reset
		}
		proper.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var progress bytes.Buffer
	d := patient(t, server.URL+"/mirror", &progress)
	d.silent = filepath.Join(t.TempDir(), "silent")
	assertMissing(t, d, "kubectl", "did not answer", &progress)
	if _, err := os.Stat(d.silent); !os.IsNotExist(err) {
		t.Errorf("the host counts as one that does not answer: %v", err)
	}
}

func TestAListWithTwoDigestsOfAFileIsRefused(t *testing.T) {
	t.Parallel()
	if digest, err := listedDigest([]byte(sum(nil)+"  a\n"+sum([]byte("b"))+"  a\n"), "a"); err == nil {
		t.Errorf("got %s", digest)
	}
}

func TestAnEmptyProgramIsNone(t *testing.T) {
	t.Parallel()
	const archive = "etcd-v3.7.0-linux-amd64.tar.gz"
	served := published(t, "linux/amd64")
	path := "github.com/etcd-io/etcd/releases/download/v3.7.0/"
	served[path+archive] = tarball(t, "etcd-v3.7.0-linux-amd64/etcd", "")
	served[path+"SHA256SUMS"] = []byte(sum(served[path+archive]) + "  " + archive + "\n")
	var progress bytes.Buffer
	d := patient(t, serve(t, served).URL+"/mirror", &progress)
	refused(t, d, "etcd@v3.7.0", "it is empty", &progress)
}

func TestAnArchiveIsNotUnpackedOnItsWay(t *testing.T) {
	t.Parallel()
	served := published(t, "linux/amd64")
	proper := serve(t, served)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tar.gz") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		proper.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	d := patient(t, server.URL+"/mirror", io.Discard)
	if obtained, err := d.programs(t.Context(), files(t, "linux/amd64", "etcd@v3.7.0")); err != nil || len(obtained) != 1 {
		t.Errorf("got %v, %v", obtained, err)
	}
}
