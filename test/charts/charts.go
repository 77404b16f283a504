// SPDX-License-Identifier: Apache-2.0

// Package charts packs the charts that lie in its folders and serves them as a chart repository, to tests and to the
// demo.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/yaml"
)

// sources has a folder <name>-<version> for each chart.
//
//go:embed all:*-*.*.*
var sources embed.FS

// notGzip is the chart whose archive is packed without compression.
const notGzip = "not-gzip"

// Archive is a packed chart.
type Archive struct {
	Name, Version string
	// Digest is the sha256 of Bytes in hex.
	Digest string
	Bytes  []byte
}

// NewArchive makes an Archive of bytes, whatever they are.
func NewArchive(name, version string, content []byte) Archive {
	sum := sha256.Sum256(content)
	return Archive{Name: name, Version: version, Digest: hex.EncodeToString(sum[:]), Bytes: content}
}

// All packs every chart, in the order of their folders. The same folders always give the same bytes.
func All() ([]Archive, error) {
	folders, err := sources.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the charts: %w", err)
	}
	all := make([]Archive, 0, len(folders))
	for _, folder := range folders {
		packed, err := Pack(sources, folder.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, packed)
	}
	return all, nil
}

// Get packs one chart.
func Get(name, version string) (Archive, error) {
	return Pack(sources, name+"-"+version)
}

// Pack packs the chart in a folder.
func Pack(from fs.FS, folder string) (Archive, error) {
	described, err := fs.ReadFile(from, path.Join(folder, "Chart.yaml"))
	if err != nil {
		return Archive{}, fmt.Errorf("packing %s: %w", folder, err)
	}
	var chart struct{ Name, Version string }
	if err := yaml.Unmarshal(described, &chart); err != nil {
		return Archive{}, fmt.Errorf("packing %s: reading Chart.yaml: %w", folder, err)
	}
	files := map[string]string{}
	err = fs.WalkDir(from, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		files[name[len(folder)+1:]] = string(content)
		return err
	})
	if err != nil {
		return Archive{}, fmt.Errorf("packing %s: %w", folder, err)
	}
	return PackFiles(chart.Name, chart.Version, files)
}

// PackFiles packs a chart given as its files, by their names within the chart.
func PackFiles(name, version string, files map[string]string) (Archive, error) {
	var packed bytes.Buffer
	// Nothing is compressed, so that the bytes depend on the files alone and not on the version of a library.
	zipped, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		return Archive{}, fmt.Errorf("packing %s: %w", name, err)
	}
	var into io.Writer = zipped
	if name == notGzip {
		into = &packed
	}
	if err := writeTar(into, name, files); err != nil {
		return Archive{}, fmt.Errorf("packing %s: %w", name, err)
	}
	if name != notGzip {
		if err := zipped.Close(); err != nil {
			return Archive{}, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	return NewArchive(name, version, packed.Bytes()), nil
}

// writeTar writes the files in order, with nothing in it that changes from time to time.
func writeTar(into io.Writer, chart string, files map[string]string) error {
	writer := tar.NewWriter(into)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: chart + "/" + name, Mode: 0o644, Size: int64(len(files[name])), Format: tar.FormatPAX}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.WriteString(writer, files[name]); err != nil {
			return err
		}
	}
	return writer.Close()
}
