// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/override"
	overrides "shipper.dev/shipper/chart/override"
)

// overridden is content with the changes of a cluster, in a list of its own. Objects that no change concerns are shared. The error is that
// of one change, for a Release is written whole or not at all.
func overridden(
	ctx context.Context, content []unstructured.Unstructured, changes []override.Change,
) ([]unstructured.Unstructured, error) {
	out := make([]unstructured.Unstructured, 0, len(content))
	for i := range content {
		changed, err := overrides.Apply(ctx, &content[i], content[i].GetNamespace(), changes)
		if err != nil {
			return nil, err
		}
		if changed != nil {
			out = append(out, *changed)
		}
	}
	return out, nil
}

// placing identifies content with the changes of a cluster. Without any it is the digest of the content, as in anchors of earlier versions.
func placing(snapshot string, changes []override.Change) string {
	if len(changes) == 0 {
		return snapshot
	}
	digest := override.Digest(changes)
	sum := sha256.Sum256(append([]byte(snapshot+" "), digest[:]...))
	return hex.EncodeToString(sum[:])
}
