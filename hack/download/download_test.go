// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEachPlatformHasItsPrograms(t *testing.T) {
	t.Parallel()
	for platform, missing := range map[string][]string{
		"linux/amd64":  nil,
		"linux/arm64":  nil,
		"darwin/arm64": {"kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		"darwin/amd64": {"kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		"plan9/386":    {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "prometheus"},
	} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			want := map[string]string{}
			var served map[string][]byte
			if platform != "plan9/386" {
				served = published(t, platform)
			}
			for _, p := range all {
				if name, _, _ := strings.Cut(p, "@"); !slices.Contains(missing, name) {
					want[name] = contents(name, platform)
				}
			}
			var progress bytes.Buffer
			d := patient(t, serve(t, served).URL+"/mirror/", &progress)
			obtained, err := d.programs(t.Context(), files(t, platform, all...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, inFolder(t, d.out)); diff != "" {
				t.Errorf("programs (-want +got):\n%s\n%s", diff, &progress)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), obtained); diff != "" && len(want) > 0 {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			for _, name := range missing {
				if !strings.Contains(progress.String(), name) {
					t.Errorf("it does not say why there is no %s:\n%s", name, &progress)
				}
			}
		})
	}
}

func TestAFileThatIsNotThePublishedOneIsNoProgram(t *testing.T) {
	t.Parallel()
	const (
		scheduler = "dl.k8s.io/release/v1.37.1/bin/linux/amd64/kube-scheduler"
		etcd      = "github.com/etcd-io/etcd/releases/download/v3.7.0/"
		kwok      = "api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0"
	)
	for name, c := range map[string]struct {
		change func(map[string][]byte)
		is     string // the program that is missing then
		says   string
	}{
		"changed": {
			func(f map[string][]byte) { f[scheduler] = append([]byte("!"), f[scheduler][1:]...) },
			"kube-scheduler", "the SHA-256 digest of kube-scheduler is ",
		},
		"absent":           {func(f map[string][]byte) { delete(f, scheduler) }, "kube-scheduler", "404 Not Found"},
		"without a digest": {func(f map[string][]byte) { delete(f, scheduler+".sha256") }, "kube-scheduler", ".sha256 answered 404 Not Found"},
		"with a page in place of a digest": {
			func(f map[string][]byte) { f[scheduler+".sha256"] = []byte("<html>Please log in</html>") },
			"kube-scheduler", `"<html>please" is no SHA-256 digest`,
		},
		"with an empty digest": {
			func(f map[string][]byte) { f[scheduler+".sha256"] = nil }, "kube-scheduler", "the file of the digest is empty",
		},
		"not in the list": {
			func(f map[string][]byte) { f[etcd+"SHA256SUMS"] = []byte(sum(nil) + "  another.tar.gz\n") },
			"etcd", "the list of digests has no etcd-v3.7.0-linux-amd64.tar.gz",
		},
		"an archive without the program": {
			func(f map[string][]byte) {
				f[etcd+"etcd-v3.7.0-linux-amd64.tar.gz"] = tarball(t, "etcd-v3.7.0-linux-amd64/README.md", "etcd")
				f[etcd+"SHA256SUMS"] = []byte(sum(f[etcd+"etcd-v3.7.0-linux-amd64.tar.gz"]) + "  etcd-v3.7.0-linux-amd64.tar.gz\n")
			},
			"etcd", "it has no etcd-v3.7.0-linux-amd64/etcd",
		},
		"no archive": {
			func(f map[string][]byte) {
				f[etcd+"etcd-v3.7.0-linux-amd64.tar.gz"] = []byte("etcd")
				f[etcd+"SHA256SUMS"] = []byte(sum([]byte("etcd")) + "  etcd-v3.7.0-linux-amd64.tar.gz\n")
			},
			"etcd", "reading etcd-v3.7.0-linux-amd64.tar.gz",
		},
		"a release without digests": {
			func(f map[string][]byte) {
				f[kwok] = []byte(`{"assets": [{"name": "kwok-linux-amd64", "digest": null}]}`)
			},
			"kwok", "the release has no digest of kwok-linux-amd64",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := published(t, "linux/amd64")
			c.change(served)
			var progress bytes.Buffer
			d := patient(t, serve(t, served).URL+"/mirror", &progress)
			d.silent = t.TempDir()
			assertMissing(t, d, c.is, c.says, &progress)
			if entries, err := os.ReadDir(d.silent); err != nil || len(entries) > 0 {
				t.Errorf("a host that answered counts as one that does not: %v %v", entries, err)
			}
			d.required = true
			if _, err := d.programs(t.Context(), files(t, "linux/amd64", all...)); err == nil || err.Error() != "not downloaded: "+c.is {
				t.Errorf("when all programs are required: %v", err)
			}
		})
	}
}

// assertMissing downloads all programs, and expects one of them to be missing and the progress to say why.
func assertMissing(t *testing.T, d *downloader, is, says string, progress *bytes.Buffer) {
	t.Helper()
	obtained, err := d.programs(t.Context(), files(t, "linux/amd64", all...))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, p := range all {
		if name, _, _ := strings.Cut(p, "@"); name != is {
			want[name] = contents(name, "linux/amd64")
		}
	}
	if diff := cmp.Diff(want, inFolder(t, d.out)); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), obtained); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	line, got := "download: cannot download "+is+": ", progress.String()
	if !strings.Contains(got, line) || !strings.Contains(got, says) {
		t.Errorf("progress has no line %q with %q:\n%s", line, says, progress)
	}
}

func TestATruncatedFileIsNoProgram(t *testing.T) {
	t.Parallel()
	served := published(t, "linux/amd64")
	proper := serve(t, served)
	for says, length := range map[string]string{"unexpected EOF": "4096", "the SHA-256 digest of kubectl is ": ""} {
		t.Run("of length "+length, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/kubectl") {
					proper.Config.Handler.ServeHTTP(w, r)
					return
				}
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = io.WriteString(w, "#!/bin/sh\n")
				_ = http.NewResponseController(w).Flush()
			}))
			t.Cleanup(server.Close)
			var progress bytes.Buffer
			d := patient(t, server.URL+"/mirror", &progress)
			assertMissing(t, d, "kubectl", says, &progress)
		})
	}
}

func TestADownloadThatStallsIsGivenUp(t *testing.T) {
	t.Parallel()
	proper := serve(t, published(t, "linux/amd64"))
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/kwok-linux-amd64") {
			_, _ = io.WriteString(w, "#!/bin/sh\n")
			_ = http.NewResponseController(w).Flush()
			<-ended
			return
		}
		proper.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	var progress bytes.Buffer
	d := patient(t, server.URL+"/mirror", &progress)
	if _, err := d.programs(t.Context(), files(t, "linux/amd64", "kubectl@v1.37.1")); err != nil {
		t.Fatal(err)
	}
	d.stall = 100 * time.Millisecond
	if _, err := d.programs(t.Context(), files(t, "linux/amd64", "kwok@v0.8.0")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"kubectl"}, slices.Sorted(maps.Keys(inFolder(t, d.out)))); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	want := "cannot download kwok: " + strings.TrimPrefix(server.URL, "http://") + " has sent nothing for 100ms"
	if !strings.Contains(progress.String(), want) {
		t.Errorf("progress does not have %q:\n%s", want, &progress)
	}
}

// TestAHostThatDoesNotAnswerIsAskedOnce has a server that answers no request before the test ends.
func TestAHostThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	requests := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		<-ended
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	host := strings.TrimPrefix(server.URL, "http://")
	var progress bytes.Buffer
	d := patient(t, server.URL, &progress)
	d.silent, d.answer = filepath.Join(t.TempDir(), "silent"), time.Second
	assert := func(asked bool, wantProgress string) {
		t.Helper()
		progress.Reset()
		obtained, err := d.programs(t.Context(), files(t, "linux/amd64", all...))
		if (err != nil) != d.required || len(obtained) > 0 || len(inFolder(t, d.out)) > 0 {
			t.Errorf("got %v, %v", obtained, err)
		}
		if (len(requests) > 0) != asked {
			t.Errorf("%d requests, want some: %t", len(requests), asked)
		}
		for len(requests) > 0 {
			<-requests
		}
		if !strings.HasPrefix(progress.String(), wantProgress) {
			t.Errorf("progress is %q, want %q", &progress, wantProgress)
		}
	}
	const names = "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, prometheus"
	assert(true, "download: cannot download "+names+": "+host+" did not answer within 1s\n")
	assert(false, "download: cannot download "+names+": "+host+" did not answer ")
	d.required = true
	assert(true, "download: cannot download "+names+": "+host+" did not answer within 1s\n")
	d.required, d.now = false, func() time.Time { return time.Now().Add(retryInterval) }
	assert(true, "download: cannot download "+names+": "+host+" did not answer within 1s\n")
}

func TestAHostThatRefusesConnectionsDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var progress bytes.Buffer
	d := patient(t, server.URL, &progress)
	d.silent = t.TempDir()
	if _, err := d.programs(t.Context(), files(t, "linux/amd64", "kubectl@v1.37.1", "kube-scheduler@v1.37.1")); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	want := "download: cannot download kubectl, kube-scheduler: " + host + " did not answer: dial tcp " + host +
		": connect: connection refused\n"
	if diff := cmp.Diff(want, progress.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if entries, err := os.ReadDir(d.silent); err != nil || len(entries) != 1 {
		t.Errorf("it is not remembered: %v %v", entries, err)
	}
}

// TestAnInterruptIsNoSilence interrupts the downloads when a server has their first request.
func TestAnInterruptIsNoSilence(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt(reason)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	var progress bytes.Buffer
	d := patient(t, server.URL, &progress)
	d.silent = t.TempDir()
	if _, err := d.programs(ctx, files(t, "linux/amd64", all...)); !errors.Is(err, reason) || progress.Len() > 0 {
		t.Errorf("%v\n%s", err, &progress)
	}
	if entries, err := os.ReadDir(d.silent); err != nil || len(entries) > 0 {
		t.Errorf("the host counts as one that does not answer: %v %v", entries, err)
	}
}

// TestAddresses has the addresses that the projects document.
func TestAddresses(t *testing.T) {
	t.Parallel()
	got := []string{}
	for _, f := range append(files(t, "linux/arm64", all...), files(t, "darwin/arm64", "etcd@v3.7.0", "kubectl@v1.30.4")...) {
		got = append(got, f.url, f.digests)
	}
	want := []string{
		"https://github.com/etcd-io/etcd/releases/download/v3.7.0/etcd-v3.7.0-linux-arm64.tar.gz",
		"https://github.com/etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver.sha256",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-controller-manager",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-controller-manager.sha256",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-scheduler",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-scheduler.sha256",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kubectl",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kubectl.sha256",
		"https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-arm64",
		"https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
		"https://github.com/prometheus/prometheus/releases/download/v3.15.0/prometheus-3.15.0.linux-arm64.tar.gz",
		"https://github.com/prometheus/prometheus/releases/download/v3.15.0/sha256sums.txt",
		"https://github.com/etcd-io/etcd/releases/download/v3.7.0/etcd-v3.7.0-darwin-arm64.zip",
		"https://github.com/etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS",
		"https://dl.k8s.io/release/v1.30.4/bin/darwin/arm64/kubectl",
		"https://dl.k8s.io/release/v1.30.4/bin/darwin/arm64/kubectl.sha256",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	for _, arg := range []string{"etcd", "helm@v3.0.0", "kubectl@1.37"} {
		name, version, _ := strings.Cut(arg, "@")
		if f, err := release(name, version, "linux/amd64"); err == nil {
			t.Errorf("%s is %v", arg, f)
		}
	}
}
