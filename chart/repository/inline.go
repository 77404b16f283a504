// SPDX-License-Identifier: Apache-2.0

package repository

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// inline loads the archive in pinned itself.
func (c *Catalog) inline(pinned shipper.Chart, key archiveKey) (*render.Chart, error) {
	key.scope = "inline" // naming the digest of an archive gives no access to one that others fetched
	if key.digest != "" {
		if loaded, ok := c.charts.Get(key.stored()); ok {
			return loaded, loaded.IsA(pinned)
		}
	}
	loaded, err := c.renders.OpenInline(pinned.Archive)
	switch {
	case err != nil:
		return nil, err
	case key.digest != "" && loaded.Digest() != key.digest:
		return nil, otherDigest("the chart's archive", loaded.Digest(), key.digest)
	}
	c.charts.Put(archiveKey{digest: loaded.Digest(), scope: key.scope}, loaded, loaded.Size())
	return loaded, loaded.IsA(pinned)
}
