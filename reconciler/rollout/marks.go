// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"strconv"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// marks are the annotations that name head, the newest Release, and what is placed; nil if they are up to date or there is none.
func marks(s *scope, head *shipper.Release) map[string]string {
	if head == nil {
		return nil
	}
	want := map[string]string{
		shipper.AppHighestObservedGenerationAnnotation: strconv.Itoa(generation(head)),
	}
	if hash, err := stamp.Mark(head.Spec.Environment); err == nil {
		want[shipper.AppObservedTemplateAnnotation] = hash
	}
	if text := contentRights(s, nil); text != s.app.Annotations[shipper.ContentRightsAnnotation] {
		want[shipper.ContentRightsAnnotation] = text
	}
	for key, value := range want {
		if s.app.Annotations[key] != value {
			return want
		}
	}
	return nil
}

// obsolete reports whether another environment has completed since the one that failed.
func obsolete(app *shipper.Application, newest *shipper.Release) bool {
	f := stamp.Failed(app)
	return f != nil && newest != nil && strategy.Complete(newest) && !newest.CreationTimestamp.Before(&f.Time) &&
		!stamp.FailedBefore(f, &newest.Spec.Environment)
}

// with are annotations to be written, and keys that are removed.
func with(mark map[string]string, removed ...string) map[string]string {
	out := map[string]string{}
	for _, key := range removed {
		out[key] = ""
	}
	maps.Copy(out, mark)
	return out
}

// contentRights are those of all Releases that place, and of one that was created just now; created may be nil.
func contentRights(s *scope, created *shipper.Release) string {
	var all []rights.Action
	for _, rel := range append(slices.Clone(strategy.Placing(s.history.Releases())), created) {
		if rel != nil {
			all = append(all, rights.ParseRecord(rel.Annotations[shipper.ContentRightsAnnotation])...)
		}
	}
	return rights.FormatRecord(all)
}
