// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
)

// Normalise rewrites the override annotation of meta as it is stored: trimmed, sorted, without repetitions. One that is
// malformed is left for Check to refuse.
func Normalise(a *answer.Answer, meta *metav1.ObjectMeta) {
	written, there := meta.Annotations[shipper.RolloutBlockOverrideAnnotation]
	if !there {
		return
	}
	names, err := block.ParseOverrides(written)
	if err != nil {
		return
	}
	if stored := block.FormatOverrides(names); stored != written {
		a.Annotate(meta, shipper.RolloutBlockOverrideAnnotation, stored)
	}
}

// Prune takes overrides out of meta whose block is gone. It is for objects whose rollout goes on while they carry an
// override that was right when it was written: nobody should have to tidy up before the next change.
func (g *Gate) Prune(ctx context.Context, a *answer.Answer, meta *metav1.ObjectMeta) error {
	names := Overrides(meta.Annotations)
	gone, err := g.Dangling(ctx, names)
	if err != nil || len(gone) == 0 {
		return err
	}
	a.Warn("RolloutBlock %s is gone and was taken out of the override annotation", block.FormatOverrides(gone))
	if left := Added(gone, names); len(left) > 0 {
		a.Annotate(meta, shipper.RolloutBlockOverrideAnnotation, block.FormatOverrides(left))
	} else {
		a.Unannotate(meta, shipper.RolloutBlockOverrideAnnotation)
	}
	return nil
}

func metaOf(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}

// SameOverride tells whether two sets of annotations override the same blocks.
func SameOverride(a, b map[string]string) bool {
	return a[shipper.RolloutBlockOverrideAnnotation] == b[shipper.RolloutBlockOverrideAnnotation]
}
