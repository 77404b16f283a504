// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// extract copies one file of an archive. The name says which kind of archive it is.
func extract(archive *os.File, name, member string, to io.Writer) error {
	var from io.Reader
	var err error
	if strings.HasSuffix(name, ".zip") {
		from, err = zipMember(archive, member)
	} else {
		from, err = tarMember(archive, member)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	n, err := io.Copy(to, io.LimitReader(from, maxSize))
	if err != nil {
		return fmt.Errorf("extracting %s from %s: %w", member, name, err)
	}
	if n == 0 {
		return fmt.Errorf("extracting %s from %s: it is empty", member, name)
	}
	if n == maxSize {
		return fmt.Errorf("extracting %s from %s: it is larger than %d bytes", member, name, maxSize)
	}
	return nil
}

// tarMember returns a reader of one file of an archive made by tar and gzip.
func tarMember(archive io.ReadSeeker, member string) (io.Reader, error) {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it has no %s", member)
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimPrefix(header.Name, "./") == member && header.Typeflag == tar.TypeReg {
			return files, nil
		}
	}
}

// zipMember returns a reader of one file of a zip archive.
func zipMember(archive *os.File, member string) (io.Reader, error) {
	info, err := archive.Stat()
	if err != nil {
		return nil, err
	}
	files, err := zip.NewReader(archive, info.Size())
	if err != nil {
		return nil, err
	}
	for _, f := range files.File {
		if f.Name == member && f.Mode().IsRegular() {
			return f.Open()
		}
	}
	return nil, fmt.Errorf("it has no %s", member)
}
