// SPDX-License-Identifier: Apache-2.0

package chart

import (
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// inline loads the archive in pinned itself.
func (c *Catalog) inline(pinned shipper.Chart, key archiveKey) (*Chart, error) {
	key.scope = "inline" // naming the digest of an archive gives no access to one that others fetched
	if key.digest != "" {
		if loaded, ok := c.charts.get(key.stored()); ok {
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
	c.charts.put(archiveKey{digest: loaded.Digest(), scope: key.scope}, loaded, loaded.Size())
	return loaded, loaded.IsA(pinned)
}
