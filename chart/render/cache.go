// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/chart/lru"
)

// teamShare: one namespace may use a quarter of the slots for rendering. Each rendering may use a core for maxRenderTime.
const teamShare = 4

// Cache bounds the concurrent renderings, in total and per namespace, and caches their results: an installation needs the
// same manifest in several passes, and charts that generate names or passwords must not generate others in between.
type Cache struct {
	room *keyedsemaphore.Semaphore
	done *lru.Cache[[sha256.Size]byte, result]
}

// result is what came of a rendering: a manifest, or why there is none.
type result struct {
	Manifest
	err error
}

// NewCache has room concurrent renderings, and caches manifests of at most most bytes in all.
func NewCache(room int, most int64) *Cache {
	return &Cache{room: keyedsemaphore.New(room, room/teamShare), done: lru.New[[sha256.Size]byte, result](most)}
}

// renderKey differs if any input of a manifest differs. The labels of a target are not an input: Prepare and Hooks add them.
func (c *Chart) renderKey(values map[string]any, t Target) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %#v %q %q %t ",
		c.digest, t.ReleaseName, t.Naming, t.releaseOptions(), t.KubeVersion, t.APIVersions, t.Lookups != nil)
	if len(t.Overrides) > 0 {
		fmt.Fprintf(h, "overrides %x ", override.Digest(t.Overrides))
	}
	spell(h, values)
	return [sha256.Size]byte(h.Sum(nil))
}

// spell writes a value unambiguously, including its type: templates print 1000000 and 1e6 differently although their JSON is
// equal, and compare an integer 1 and a float 1 differently although they print them equally.
func spell(h io.Writer, value any) {
	switch value := value.(type) {
	case map[string]any:
		fmt.Fprintf(h, "map %t %d ", value == nil, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fmt.Fprintf(h, "%q ", key)
			spell(h, value[key])
		}
	case []any:
		fmt.Fprintf(h, "list %t %d ", value == nil, len(value))
		for _, item := range value {
			spell(h, item)
		}
	default:
		fmt.Fprintf(h, "%T %#v ", value, value)
	}
}

// size is the approximate size of a manifest in memory.
func (m Manifest) size() int64 {
	size := int64(1 << 10) // for an empty manifest, too
	for _, objects := range [][]unstructured.Unstructured{m.Objects, m.hooks} {
		for i := range objects {
			size += Weigh(objects[i].Object)
		}
	}
	return size
}

// Weigh is the approximate size of a value in memory, behind an interface.
func Weigh(value any) int64 {
	// A map with one entry has room for eight, and a growing one for up to twice its entries.
	const header, eight, another = 48, 288, 72
	size := int64(16)
	switch value := value.(type) {
	case string:
		size += int64(len(value))
	case map[string]any:
		if size += header; len(value) > 0 {
			size += eight + another*int64(max(0, len(value)-8))
		}
		for key, item := range value {
			size += int64(len(key)) + Weigh(item)
		}
	case []any:
		size += 16 * int64(len(value))
		for _, item := range value {
			size += Weigh(item)
		}
	}
	return size
}
