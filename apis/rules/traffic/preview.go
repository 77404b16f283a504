// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// alone is a without the weights of other Releases where one is to have all traffic at once and the Service may select by Release. While
// two are, one of which is about to be taken back, it is the newest.
func (a Application) alone() Application {
	if !a.SelectByRelease {
		return a
	}
	sole := ""
	for _, r := range a.Releases {
		if r.Sole && r.Weight > 0 && !r.AsFound {
			sole = r.Name
		}
	}
	if sole == "" {
		return a
	}
	a.Releases = slices.Clone(a.Releases)
	for i := range a.Releases {
		if r := &a.Releases[i]; r.Name != sole && !r.AsFound {
			r.Weight = 0
		}
	}
	return a
}

// previews reports whether the preview Service selects a Release.
func (a Application) previews(release string) bool {
	return a.Preview != nil && release != "" && a.Preview.Selects.Release == release
}

// NextPreview is the new selector of the preview Service, for the Release that it is asked to select; nil when it must not change or need
// not. It does not leave Pods that serve for a Release that has none that are ready. An empty Release asks for nothing, shipper.NoRelease
// for no Pods.
func (a Application) NextPreview(release string) *Selection {
	if a.Preview == nil || release == "" || a.previews(release) {
		return nil
	}
	found := a.find(release)
	ready := found != nil && slices.ContainsFunc(livingPods(found.Pods), func(p Pod) bool { return p.Ready })
	if release != shipper.NoRelease && !ready && len(a.Preview.Serving) > 0 {
		return nil
	}
	return &Selection{Release: release}
}

// Previewed reports whether the preview Service selects a Release and all its ready Pods are endpoints of it.
func (a Application) Previewed(release string) bool {
	found := a.find(release)
	return a.previews(release) && found != nil && !slices.ContainsFunc(livingPods(found.Pods), func(p Pod) bool {
		return p.Ready && !a.Preview.Serving[p.Name]
	})
}
