// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renderings bounds how many charts are rendered at one time, and remembers what came of it: one installation asks for the same
// manifest in several passes, and charts that make up names or passwords must not make up others meanwhile.
type renderings struct {
	room chan struct{}
	done *lru[[sha256.Size]byte, Manifest]
}

// newRenderings has room for so many charts at a time, and remembers manifests of so many bytes in all.
func newRenderings(room int, most int64) *renderings {
	return &renderings{room: make(chan struct{}, room), done: newLRU[[sha256.Size]byte, Manifest](most)}
}

// renderKey differs when anything differs that a manifest is rendered from, types of values included: templates print 1000000 and
// 1e6 in two ways, and JSON in one. The labels of a target are not among it: Prepare and Hooks put them on.
func (c *Chart) renderKey(values map[string]any, t Target) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %#v", c.digest, t.ReleaseName, t.Namespace, t.KubeVersion, t.APIVersions, values)
	return [sha256.Size]byte(h.Sum(nil))
}

// size is about what a manifest takes in memory: maps and interfaces make it several times what stands in it.
func (m Manifest) size() int64 {
	const several, most = 4, 1 << 30
	total := 0
	for _, objects := range [][]unstructured.Unstructured{m.Objects, m.hooks} {
		for i := range objects {
			total += sizeOf(objects[i].Object, most)
		}
	}
	return int64(total)*several + 1<<10 // for nothing, too
}
