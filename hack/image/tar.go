// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerOf is a layer with some files, which belong to root, and the folders they are in.
func layerOf(files []file, at time.Time) (v1.Layer, error) {
	var text bytes.Buffer
	out := tar.NewWriter(&text)
	for _, folder := range folders(files) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := add(out, f.from, strings.TrimPrefix(f.to, "/"), at); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	return layer, nil
}

// folders are those that files are put into, each after the one it is in.
func folders(files []file) []string {
	seen := map[string]bool{}
	for _, f := range files {
		for folder := filepath.Dir(f.to); folder != "/"; folder = filepath.Dir(folder) {
			seen[strings.TrimPrefix(folder, "/")] = true
		}
	}
	var out []string
	for folder := range seen {
		out = append(out, folder)
	}
	slices.Sort(out)
	return out
}

// pack writes all files of a folder as a tar.
func pack(to io.Writer, folder string, at time.Time) error {
	out := tar.NewWriter(to)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return add(out, path, filepath.ToSlash(name), at)
	})
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// add puts a file into a tar. Of its mode only whether it can be executed counts: the rest is the machine's.
func add(out *tar.Writer, path, name string, at time.Time) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: mode, ModTime: at, Format: tar.FormatPAX}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
