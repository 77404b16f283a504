// SPDX-License-Identifier: Apache-2.0

package blockcheck

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// Normalise rewrites the override annotation of meta as it is stored: trimmed, sorted, without repetitions. It leaves a
// malformed one for Check to refuse.
func Normalise(meta *metav1.ObjectMeta) {
	written, there := meta.Annotations[shipper.RolloutBlockOverrideAnnotation]
	if !there {
		return
	}
	names, err := block.ParseOverrides(written)
	if err != nil {
		return
	}
	if stored := block.FormatOverrides(names); stored != written {
		response.Annotate(meta, shipper.RolloutBlockOverrideAnnotation, stored)
	}
}

// Prune removes overrides from meta whose block was deleted, or deleted and created again. It serves objects whose rollout goes
// on under an old override: users need not remove it before their next change.
func (g *Checker) Prune(ctx context.Context, a *response.Response, meta *metav1.ObjectMeta) error {
	var left, gone []types.NamespacedName
	for _, o := range block.Overrides(meta.Annotations) {
		b, err := g.Blocks.Block(ctx, o.Name)
		if err != nil {
			return err
		}
		if b == nil || (o.UID != "" && o.UID != b.UID) {
			gone = append(gone, o.Name)
		} else {
			left = append(left, o.Name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	a.Warn("RolloutBlock %s is gone and was taken out of the override annotation", block.FormatOverrides(gone))
	rewrite(meta, block.Keep(meta.Annotations, left))
	return nil
}

// Stamp records in meta who added which override, when and why. It keeps the records in old (nil on creation) of overrides that
// meta still has, and ignores records in meta: only the webhook writes them.
func (g *Checker) Stamp(ctx context.Context, user string, meta, old *metav1.ObjectMeta) error {
	if old == nil {
		old = &metav1.ObjectMeta{}
	}
	names, err := block.ParseOverrides(meta.Annotations[shipper.RolloutBlockOverrideAnnotation])
	if err != nil { // Check refuses it, unless it was there before
		set(meta, shipper.RolloutBlockOverrideStampAnnotation, old.Annotations[shipper.RolloutBlockOverrideStampAnnotation])
		return nil
	}
	known, before := block.Records(old.Annotations), Overrides(old.Annotations)
	reason := meta.Annotations[shipper.RolloutBlockOverrideReasonAnnotation]
	var records []block.Record
	for _, name := range names {
		if slices.Contains(before, name) {
			if r, ok := block.Recorded(known, name); ok { // none if the override is older than records
				if r.Reason == "" { // a reason given once is not rewritten
					r.Reason = reason
				}
				records = append(records, r)
			}
			continue
		}
		b, err := g.Blocks.Block(ctx, name)
		if err != nil {
			return err
		}
		if b == nil {
			break // Check refuses it; one live read is enough for a list of unknown blocks
		}
		records = append(records, block.Record{
			Block: name.String(), UID: b.UID, User: user, Time: metav1.Time{Time: g.Clock.Now().UTC()}.Rfc3339Copy(),
			Reason: reason,
		})
	}
	set(meta, shipper.RolloutBlockOverrideStampAnnotation, block.FormatRecords(records))
	return nil
}

// rewrite replaces the override annotations of meta by those in to.
func rewrite(meta *metav1.ObjectMeta, to map[string]string) {
	for _, key := range []string{
		shipper.RolloutBlockOverrideAnnotation, shipper.RolloutBlockOverrideStampAnnotation,
		shipper.RolloutBlockOverrideReasonAnnotation,
	} {
		set(meta, key, to[key])
	}
}

// set writes an annotation, or removes it when value is empty, unless it is so already.
func set(meta *metav1.ObjectMeta, key, value string) {
	switch {
	case meta.Annotations[key] == value:
	case value == "":
		delete(meta.Annotations, key)
	default:
		response.Annotate(meta, key, value)
	}
}

// SameOverride reports whether two sets of annotations override the same blocks.
func SameOverride(a, b map[string]string) bool {
	return a[shipper.RolloutBlockOverrideAnnotation] == b[shipper.RolloutBlockOverrideAnnotation]
}

// Overrides parses the names in an annotation that was checked when it was written. A malformed one overrides nothing.
func Overrides(annotations map[string]string) []types.NamespacedName {
	names, err := block.ParseOverrides(annotations[shipper.RolloutBlockOverrideAnnotation])
	if err != nil {
		return nil
	}
	return names
}

// Added are those of names that were not there before.
func Added(before, names []types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(slices.Clone(names), func(n types.NamespacedName) bool { return slices.Contains(before, n) })
}
