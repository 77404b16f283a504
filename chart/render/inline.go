// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"

	"shipper.dev/shipper/chart"
)

// Bounds of an archive in an Application. It is opened at admission, which must be quick.
const (
	// MaxInlineBytes bounds such an archive. It is stored in the Application and in each of its Releases.
	MaxInlineBytes    = 512 << 10
	maxInlineUnpacked = 16 << 20
)

// OpenInline loads a base64-encoded archive from an Application.
func OpenInline(encoded string) (*Chart, error) {
	return NewCache(1, 0).OpenInline(encoded)
}

// OpenInline is the function OpenInline for a chart that shares the cache with others.
func (r *Cache) OpenInline(encoded string) (*Chart, error) {
	if len(encoded) > base64.StdEncoding.EncodedLen(MaxInlineBytes) {
		return nil, chart.BrokenSpec(nil, "the chart's archive is larger than the %d KiB that are accepted here: "+
			"put it into a repository, and name that by repoUrl", MaxInlineBytes>>10)
	}
	archive, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, chart.BrokenSpec(nil, "the chart's archive is not base64, as `base64 -w0 chart.tgz` writes it")
	}
	return r.openWithin(archive, maxInlineUnpacked)
}
