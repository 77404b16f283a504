// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of an archive in an Application. It is opened at admission, which must be quick.
const (
	// MaxInlineBytes bounds such an archive. It is stored in the Application and in each of its Releases.
	MaxInlineBytes    = 512 << 10
	maxInlineUnpacked = 16 << 20
)

// OpenInline loads a base64-encoded archive from an Application.
func OpenInline(encoded string) (*Chart, error) {
	return openInline(encoded, newRenderCache(1, 0))
}

func openInline(encoded string, renders *renderCache) (*Chart, error) {
	if len(encoded) > base64.StdEncoding.EncodedLen(MaxInlineBytes) {
		return nil, brokenSpec(nil, "the chart's archive is larger than the %d KiB that are accepted here: "+
			"put it into a repository, and name that by repoUrl", MaxInlineBytes>>10)
	}
	archive, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, brokenSpec(nil, "the chart's archive is not base64, as `base64 -w0 chart.tgz` writes it")
	}
	return openWithin(archive, renders, maxInlineUnpacked)
}

// inline loads the archive in pinned itself.
func (c *Catalog) inline(pinned shipper.Chart, key archiveKey) (*Chart, error) {
	key.scope = "inline" // naming the digest of an archive gives no access to one that others fetched
	if key.digest != "" {
		if loaded, ok := c.charts.get(key.stored()); ok {
			return loaded, loaded.isA(pinned)
		}
	}
	loaded, err := openInline(pinned.Archive, c.renders)
	switch {
	case err != nil:
		return nil, err
	case key.digest != "" && loaded.digest != key.digest:
		return nil, otherDigest("the chart's archive", loaded.digest, key.digest)
	}
	c.charts.put(archiveKey{digest: loaded.digest, scope: key.scope}, loaded, loaded.size)
	return loaded, loaded.isA(pinned)
}
