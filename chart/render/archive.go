// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/verify"
)

// Bounds of the unpacked size, subcharts included. Helm's loader bounds each archive alone, and archives may contain archives.
const (
	maxUnpacked   = 100 << 20
	maxFiles      = 10_000
	maxDepth      = 8
	maxFileOfHelm = 5 << 20
)

// Open loads a chart from the bytes of its archive, as `helm package` makes it, and keeps them.
func Open(archive []byte) (*Chart, error) {
	return NewCache(1, 0).Open(archive)
}

// Open is the function Open for a chart that shares the cache with others.
func (r *Cache) Open(archive []byte) (*Chart, error) {
	return r.openWithin(archive, maxUnpacked)
}

// openWithin is Open for archives that unpack to at most so many bytes.
func (r *Cache) openWithin(archive []byte, most int64) (*Chart, error) {
	unpacked := budget{bytes: most, files: maxFiles, most: most}
	if err := unpacked.spend(bytes.NewReader(archive), maxDepth); err != nil {
		return nil, chart.BrokenSpec(nil, "the chart's archive cannot be used: %s", err)
	}
	loaded, err := chart.Guard(func() (*helmchart.Chart, error) { return loader.LoadArchive(bytes.NewReader(archive)) })
	if err != nil {
		return nil, chart.BrokenSpec(nil, "the chart's archive cannot be used: %s", chart.Shorten(err.Error()))
	}
	dropRaw(loaded)
	return &Chart{
		helm: loaded, archive: archive, digest: verify.DigestOf(archive),
		size: int64(len(archive)) + most - unpacked.bytes, renders: r,
	}, nil
}

// dropRaw drops the second copy of the files, which is never read.
func dropRaw(c *helmchart.Chart) {
	c.Raw = nil
	for _, child := range c.Dependencies() {
		dropRaw(child)
	}
}

// budget is the remaining size that may be unpacked.
type budget struct {
	bytes int64
	files int
	// most is what bytes was at first.
	most int64
}

// spend measures the unpacked size of an archive, and of the subcharts in it.
func (b *budget) spend(archive io.Reader, depth int) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return errors.New("it is not a gzip file")
	}
	files := tar.NewReader(&meter{from: unzipped, left: &b.bytes})
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return b.unreadable(err)
		}
		b.files--
		if b.files < 0 {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		if header.Size > maxFileOfHelm {
			return fmt.Errorf("its file %q is larger than %s", chart.Shorten(header.Name), chart.Mebibytes(maxFileOfHelm))
		}
		if !isSubchart(header.Name) {
			continue
		}
		if depth == 0 {
			return fmt.Errorf("subcharts are packed into one another more than %d times", maxDepth)
		}
		if err := b.spend(files, depth-1); err != nil {
			return fmt.Errorf("subchart %s: %w", chart.Shorten(path.Base(header.Name)), err)
		}
	}
}

// subchart matches the archives of subcharts that the loader unpacks.
var subchart = regexp.MustCompile(`^[^/]+/(charts/[^/]+/)*charts/[^/._][^/]*\.tgz$`)

// isSubchart reports whether the loader would unpack a file of this name.
func isSubchart(name string) bool {
	return subchart.MatchString(strings.ReplaceAll(name, "\\", "/"))
}

// errTooLarge is a meter's error at the end of the budget.
var errTooLarge = errors.New("nothing is left")

func (b *budget) unreadable(err error) error {
	if errors.Is(err, errTooLarge) {
		return fmt.Errorf("it unpacks to more than %s", chart.Mebibytes(b.most))
	}
	return fmt.Errorf("it is not a whole tar file: %w", err)
}

// meter counts the bytes read, and stops at the end of the budget.
type meter struct {
	from io.Reader
	left *int64
}

// Read reads and counts.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if *m.left -= int64(n); *m.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
