// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// pretend is an order for all platforms, whose programs say which they are for.
func pretend(t *testing.T) order {
	return order{
		root: root, out: t.TempDir(), version: "v1.2.3", downloads: "https://downloads.example.com", at: time.Unix(1700000000, 0).UTC(),
		platforms: strings.Split(everywhere, ","),
		build: func(_ context.Context, system, arch, into string) error {
			name := "shipperctl"
			if system == "windows" {
				name += ".exe"
			}
			return os.WriteFile(filepath.Join(into, name), []byte(system+arch), 0o700)
		},
	}
}

// content is what an archive has: the mode of each file, and its text.
func content(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	if strings.HasSuffix(path, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = f.Mode().String() + " " + all(t, in)
		}
		return out
	}
	zipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = header.FileInfo().Mode().String() + " " + all(t, r)
	}
}

func all(t *testing.T, in io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachPlatformHasAnArchive(t *testing.T) {
	o := pretend(t)
	if err := o.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	unix := func(system, arch string) map[string]string {
		return map[string]string{"LICENSE": "-rw-r--r-- " + string(license), "shipperctl": "-rwxr-xr-x " + system + arch}
	}
	windows := func(arch string) map[string]string {
		return map[string]string{"LICENSE": "-rw-r--r-- " + string(license), "shipperctl.exe": "-rwxr-xr-x windows" + arch}
	}
	want := map[string]map[string]string{
		"shipperctl_v1.2.3_linux_amd64.tar.gz":  unix("linux", "amd64"),
		"shipperctl_v1.2.3_linux_arm64.tar.gz":  unix("linux", "arm64"),
		"shipperctl_v1.2.3_darwin_amd64.tar.gz": unix("darwin", "amd64"),
		"shipperctl_v1.2.3_darwin_arm64.tar.gz": unix("darwin", "arm64"),
		"shipperctl_v1.2.3_windows_amd64.zip":   windows("amd64"),
		"shipperctl_v1.2.3_windows_arm64.zip":   windows("arm64"),
	}
	got := map[string]map[string]string{}
	var sums []string
	for _, name := range files(t, o.out) {
		if name == "checksums.txt" || name == "shipper.yaml" {
			continue
		}
		got[name] = content(t, filepath.Join(o.out, name))
		text, err := os.ReadFile(filepath.Join(o.out, name))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x  %s", sha256.Sum256(text), name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(o.out, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	slices.Sort(sums)
	if diff := cmp.Diff(sums, lines); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}
}

// files are the names of a folder's files.
func files(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Name())
	}
	return out
}

// TestKrewFindsThePlugin takes the way that krew takes: from a platform's labels to an archive with that checksum and the program.
func TestKrewFindsThePlugin(t *testing.T) {
	o := pretend(t)
	if err := o.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.out, "shipper.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got plugin
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Metadata["name"] != "shipper" || got.Spec.Version != "v1.2.3" || len(got.Spec.ShortDescription) > 50 {
		t.Errorf("it is %v %s: %s", got.Metadata, got.Spec.Version, got.Spec.ShortDescription)
	}
	found := map[string]bool{}
	for _, p := range got.Spec.Platforms {
		system, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		found[system+"/"+arch] = true
		name, ok := strings.CutPrefix(p.URI, "https://downloads.example.com/v1.2.3/")
		if !ok {
			t.Errorf("%s/%s is at %s", system, arch, p.URI)
		}
		path := filepath.Join(o.out, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != p.SHA256 {
			t.Errorf("%s has the checksum %s, not %s", name, got, p.SHA256)
		}
		if got := content(t, path)[p.Bin]; got != "-rwxr-xr-x "+system+arch {
			t.Errorf("%s in %s is %q", p.Bin, name, got)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(o.platforms)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestTheSameTreeGivesTheSameArchives(t *testing.T) {
	one, two := pretend(t), pretend(t)
	for _, o := range []order{one, two} {
		if err := o.make(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files(t, one.out) {
		first, err := os.ReadFile(filepath.Join(one.out, name))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(two.out, name))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}

// TestWhatIsDownloadedRuns is the way of a user on a machine like this one.
func TestWhatIsDownloadedRuns(t *testing.T) {
	o := order{
		root: root, out: t.TempDir(), version: "v1.2.3", platforms: []string{runtime.GOOS + "/" + runtime.GOARCH}, at: time.Unix(0, 0),
	}
	o.build = o.shipperctl
	if err := o.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("shipperctl_v1.2.3_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	text := content(t, filepath.Join(o.out, name))["shipperctl"]
	path := filepath.Join(t.TempDir(), "shipperctl")
	if err := os.WriteFile(path, []byte(strings.TrimPrefix(text, "-rwxr-xr-x ")), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte("shipperctl ")) {
		t.Errorf("shipperctl version: %v\n%s", err, out)
	}
}
