// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// archive is what people of one platform download.
type archive struct {
	system, arch string
	name         string // of the file
	program      string // in it
	sum          string // SHA-256 of the file, in hex
}

// file is a file in an archive.
type file struct {
	name string
	mode os.FileMode
	text []byte
}

// archive builds shipperctl for a platform and packs it: a zip for Windows, a tar for the others.
func (o order) archive(ctx context.Context, system, arch string) (archive, error) {
	out := archive{system: system, arch: arch, program: "shipperctl"}
	name, pack := fmt.Sprintf("shipperctl_%s_%s_%s", o.version, system, arch), packTar
	out.name = name + ".tar.gz"
	if system == "windows" {
		out.name, out.program, pack = name+".zip", "shipperctl.exe", packZip
	}
	scratch, err := os.MkdirTemp("", "shipper-dist-")
	if err != nil {
		return out, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // any rest is in the folder for temporary files
	if err := o.build(ctx, system, arch, scratch); err != nil {
		return out, err
	}
	program, err := os.ReadFile(filepath.Join(scratch, out.program))
	if err != nil {
		return out, err
	}
	license, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return out, err
	}
	var text bytes.Buffer
	if err := pack(&text, o.at, file{"LICENSE", 0o644, license}, file{out.program, 0o755, program}); err != nil {
		return out, fmt.Errorf("packing %s: %w", out.name, err)
	}
	out.sum = fmt.Sprintf("%x", sha256.Sum256(text.Bytes()))
	return out, os.WriteFile(filepath.Join(o.out, out.name), text.Bytes(), 0o644)
}

func packTar(to io.Writer, at time.Time, files ...file) error {
	zipped := gzip.NewWriter(to)
	out := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.text)), Mode: int64(f.mode), ModTime: at, Format: tar.FormatPAX,
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(f.text); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zipped.Close()
}

func packZip(to io.Writer, at time.Time, files ...file) error {
	out := zip.NewWriter(to)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.text); err != nil {
			return err
		}
	}
	return out.Close()
}
