// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// teamShare is the part that one namespace has at most of the charts that are rendered at one time: a quarter. Each may take all of a
// core for as long as maxRenderTime.
const teamShare = 4

// renderCache bounds how many charts are rendered at one time, of each namespace some of them, and remembers what came of it: one
// installation asks for the same manifest in several passes, and charts that make up names or passwords must not make up others
// meanwhile.
type renderCache struct {
	room *keyedsemaphore.Semaphore
	done *lru[[sha256.Size]byte, Manifest]
}

// newRenderCache has room for so many charts at a time, and remembers manifests of so many bytes in all.
func newRenderCache(room int, most int64) *renderCache {
	return &renderCache{room: keyedsemaphore.New(room, room/teamShare), done: newLRU[[sha256.Size]byte, Manifest](most)}
}

// renderKey differs when anything differs that a manifest is rendered from. The labels of a target are not among it: Prepare and
// Hooks put them on.
func (c *Chart) renderKey(values map[string]any, t Target) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q ", c.digest, t.ReleaseName, t.Namespace, t.KubeVersion, t.APIVersions)
	spell(h, values)
	return [sha256.Size]byte(h.Sum(nil))
}

// spell writes a value so that no other is written alike, types included: templates print 1000000 and 1e6 in two ways, and JSON in
// one; 1 as a whole number and as another is printed in one way, and compared in two.
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

// size is about what a manifest takes in memory.
func (m Manifest) size() int64 {
	size := int64(1 << 10) // for nothing, too
	for _, objects := range [][]unstructured.Unstructured{m.Objects, m.hooks} {
		for i := range objects {
			size += weigh(objects[i].Object)
		}
	}
	return size
}

// weigh is about what a value takes in memory, where an interface points to it.
func weigh(value any) int64 {
	// A map has room for eight entries as soon as it has one, and when it grows for up to twice as many as it has.
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
			size += int64(len(key)) + weigh(item)
		}
	case []any:
		size += 16 * int64(len(value))
		for _, item := range value {
			size += weigh(item)
		}
	}
	return size
}
