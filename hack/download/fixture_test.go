// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// all are the programs that can be downloaded, with the versions that the tests publish.
var all = []string{
	"etcd@v3.7.0", "kube-apiserver@v1.37.1", "kube-controller-manager@v1.37.1", "kube-scheduler@v1.37.1", "kubectl@v1.37.1",
	"kwok@v0.8.0", "prometheus@v3.15.0",
}

// contents is what a program contains in the published releases.
func contents(program, platform string) string {
	return "#!/bin/sh\necho " + program + " for " + platform + "\n" + strings.Repeat("#", 4096)
}

// published returns the files of all releases by their address without https://, as a mirror has them.
func published(t *testing.T, platform string) map[string][]byte {
	t.Helper()
	system, arch, _ := strings.Cut(platform, "/")
	files := map[string][]byte{}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		if path := "dl.k8s.io/release/v1.37.1/bin/" + platform + "/" + name; system == "linux" || name == "kubectl" {
			files[path] = []byte(contents(name, platform))
			files[path+".sha256"] = []byte(sum(files[path]))
		}
	}
	etcd, pack := "etcd-v3.7.0-"+system+"-"+arch, tarball
	suffix := ".tar.gz"
	if system == "darwin" {
		suffix, pack = ".zip", zipped
	}
	path := "github.com/etcd-io/etcd/releases/download/v3.7.0/"
	files[path+etcd+suffix] = pack(t, etcd+"/etcdctl", "another", etcd+"/etcd", contents("etcd", platform))
	files[path+"SHA256SUMS"] = []byte(sum([]byte("of another")) + "  etcd-v3.7.0-linux-s390x.tar.gz\n" +
		sum(files[path+etcd+suffix]) + "  " + etcd + suffix + "\n")
	kwok := "kwok-" + system + "-" + arch
	path = "github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/" + kwok
	files[path] = []byte(contents("kwok", platform))
	files["api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0"] = fmt.Appendf(nil,
		`{"tag_name": "v0.8.0", "assets": [{"name": "kwok.yaml", "digest": null}, {"name": %q, "digest": "sha256:%s"}]}`, kwok, sum(files[path]))
	prometheus := "prometheus-3.15.0." + system + "-" + arch
	path = "github.com/prometheus/prometheus/releases/download/v3.15.0/"
	files[path+prometheus+".tar.gz"] = tarball(t,
		prometheus+"/promtool", "another", prometheus+"/prometheus", contents("prometheus", platform))
	files[path+"sha256sums.txt"] = []byte(sum(files[path+prometheus+".tar.gz"]) + "  " + prometheus + ".tar.gz\n")
	return files
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// tarball packs files, given as names and contents in turn.
func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipper)
	for pair := range slices.Chunk(files, 2) {
		if err := archive.WriteHeader(&tar.Header{Name: pair[0], Size: int64(len(pair[1])), Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipped packs files as tarball does.
func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for pair := range slices.Chunk(files, 2) {
		f, err := archive.Create(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, pair[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// serve serves files below /mirror/.
func serve(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/mirror/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server
}

// patient returns a downloader that waits for a server on a busy machine, too.
func patient(t *testing.T, mirror string, progress io.Writer) *downloader {
	t.Helper()
	d := newDownloader(t.TempDir(), mirror, progress)
	d.answer, d.stall = time.Minute, time.Minute
	return d
}

// files returns those of some programs.
func files(t *testing.T, platform string, programs ...string) []file {
	t.Helper()
	var out []file
	for _, p := range programs {
		name, version, _ := strings.Cut(p, "@")
		f, err := release(name, version, platform)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// inFolder returns the executables of a folder by name, and fails for any other file.
func inFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		out[entry.Name()] = string(text)
	}
	return out
}
