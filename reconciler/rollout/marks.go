// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
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

// contentRights is the record of the Application: the rights of all Releases that place, and of one that was created just now; created may
// be nil. It is empty if none of them has a record.
func contentRights(s *scope, created *shipper.Release) string {
	var all []rights.Action
	var recorded bool
	for _, rel := range append(slices.Clone(strategy.Placing(s.history.Releases())), created) {
		if rel == nil {
			continue
		}
		_, has := rel.Annotations[shipper.ContentRightsAnnotation]
		recorded = recorded || has || rights.HoldsEnvelopes(rel.Spec.Environment.Resources)
		all = append(all, rights.Recorded(rel.Spec.Environment.Resources, rel.Annotations)...)
	}
	if !recorded {
		return ""
	}
	return rights.FormatRecord(all)
}

// recordContent writes the record of Releases that an earlier version has created, and reports whether it wrote one. Content that was lost
// is not known: it needs the right to place everything.
func (r *pass) recordContent(ctx context.Context, s *scope) (wrote bool, err error) {
	for _, rel := range strategy.Placing(s.history.Releases()) {
		_, has := rel.Annotations[shipper.ContentRightsAnnotation]
		if has || r.content == nil || !rights.HoldsEnvelopes(rel.Spec.Environment.Resources) {
			continue
		}
		if err := r.recordContentOf(ctx, rel); err != nil {
			return wrote, fmt.Errorf("recording the rights that the content of release %s/%s needs: %w", rel.Namespace, rel.Name, err)
		}
		wrote = true
	}
	return wrote, nil
}

func (r *pass) recordContentOf(ctx context.Context, rel *shipper.Release) error {
	env, needs := &rel.Spec.Environment, []rights.Action{rights.PlaceEverything}
	content, err := r.snapshots.Content(ctx, rel.Namespace, env.ResourcesDigest)
	if err == nil {
		needs, err = r.content.Needs(rel.Namespace, env.Resources, content)
	}
	if err != nil && !errors.Is(err, chart.ErrNotKept) {
		return err
	}
	is := rel.DeepCopy() // the cache has rel
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, shipper.ContentRightsAnnotation, rights.FormatRecord(needs))
	err = r.client.Patch(ctx, is, onlyIfUnchanged(rel))
	r.wrote(is)
	return err
}
