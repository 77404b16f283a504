// SPDX-License-Identifier: Apache-2.0

// Package blocks reads RolloutBlocks and says what they mean for an object.
package blocks

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bearing reads the RolloutBlocks that bear on a namespace.
func Bearing(ctx context.Context, from client.Reader, namespace, global string) ([]*shipper.RolloutBlock, error) {
	var out []*shipper.RolloutBlock
	namespaces := []string{namespace}
	if global != namespace && global != "" {
		namespaces = append(namespaces, global)
	}
	for _, namespace := range namespaces {
		var list shipper.RolloutBlockList
		if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing rollout blocks in %s: %w", namespace, err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// Verdict is what the blocks that bear on an object's namespace mean for it. An override that cannot be read overrides
// nothing.
func Verdict(o client.Object, bearing []*shipper.RolloutBlock) block.Verdict {
	overrides, err := block.ParseOverrides(o.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation])
	if err != nil {
		overrides = nil
	}
	return block.Judge(bearing, overrides)
}

// Hold returns rels with what keeps each from being deleted: the blocks that stop its Application, or itself.
func Hold(app *shipper.Application, rels []strategy.Release, bearing []*shipper.RolloutBlock) []strategy.Release {
	out := slices.Clone(rels)
	for i := range out {
		for _, o := range []client.Object{app, out[i].Release} {
			if v := Verdict(o, bearing); v.Blocked() {
				out[i].Held = v.Message()
				break
			}
		}
	}
	return out
}

// Overridden lists the blocks that an object overrides, as overrides do; empty when it overrides none or is blocked.
func Overridden(o client.Object, bearing []*shipper.RolloutBlock) string {
	if v := Verdict(o, bearing); !v.Blocked() {
		return block.FormatOverrides(block.Names(v.Overridden))
	}
	return ""
}
