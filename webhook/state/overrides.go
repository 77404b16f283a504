// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// overridesInPage bounds how many whole ResourceOverrides, of 64 KiB each and their metadata, are in memory for one namespace.
const overridesInPage = 50

// OverridesNow are the outlines of the ResourceOverrides in a namespace, read from the API server. Reviews of one namespace share a list.
// Of more than override.MaxInNamespace it returns at least one more than these, and not all.
func (f *Reader) OverridesNow(ctx context.Context, namespace string) ([]override.Outline, error) {
	if f.live == nil || namespace == "" {
		return nil, nil
	}
	done := f.overrides.DoChan(namespace, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		defer cancel()
		return f.listOverrides(ctx, namespace)
	})
	select {
	case answer := <-done:
		out, _ := answer.Val.([]override.Outline)
		return out, answer.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("listing the ResourceOverrides of namespace %s: %w", namespace, ctx.Err())
	}
}

func (f *Reader) listOverrides(ctx context.Context, namespace string) ([]override.Outline, error) {
	var out []override.Outline
	for next := ""; len(out) <= override.MaxInNamespace; {
		var page shipper.ResourceOverrideList
		err := f.live.List(ctx, &page, client.InNamespace(namespace), client.Limit(overridesInPage), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing the ResourceOverrides of namespace %s: %w", namespace, err)
		}
		for i := range page.Items {
			out = append(out, override.OutlineOf(&page.Items[i], f.globalNamespace))
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	return out, nil
}
