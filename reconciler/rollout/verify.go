// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// verify finds out who signed the archive that a Release is pinned to, where its chart demands a signature, and writes that down: from
// then on the Release is what it is, whatever becomes of repository and keys. What another Release of the Application was found
// to be is believed of the same archive, so that going back to it needs neither.
func (r *pass) verify(ctx context.Context, s *scope, i int, d *releasesDone) error {
	rel := s.history.Live[i].Release
	if rel.Spec.Environment.Chart.Verify.SecretName == "" || rel.Signature() != nil {
		return nil
	}
	found := alike(rel, s.history.Releases())
	if found == nil {
		signature, err := r.charts.Verify(ctx, rel)
		if err != nil {
			return fmt.Errorf("verifying the chart of release %s: %w", key(rel), err)
		}
		found = &signature
	}
	text, err := json.Marshal(found)
	if err != nil {
		return fmt.Errorf("writing down who signed the chart of release %s: %w", key(rel), err)
	}
	was := rel
	rel = s.own(i)
	metav1.SetMetaDataAnnotation(&rel.ObjectMeta, shipper.ReleaseChartSignatureAnnotation, string(text))
	err = r.client.Patch(ctx, rel, onlyIfUnchanged(was))
	if r.wrote(rel); err != nil {
		return fmt.Errorf("writing down who signed the chart of release %s: %w", key(rel), err)
	}
	d.note(rel, chartVerified(rel, found))
	return nil
}

// alike is what was found of the same archive for another Release that demands the same.
func alike(rel *shipper.Release, all []*shipper.Release) *shipper.ChartSignature {
	digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
	for _, other := range slices.Backward(all) {
		signature := other.Signature()
		if signature != nil && signature.Digest == digest && other.Spec.Environment.Chart.Same(rel.Spec.Environment.Chart) {
			return signature
		}
	}
	return nil
}
