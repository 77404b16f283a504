// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"shipper.dev/shipper/chart/render/engine"
)

// FuzzRender runs any template: it ends by itself, within bounds, and never with a panic.
func FuzzRender(f *testing.F) {
	for _, file := range []string{"fails.txt", "works.txt"} {
		for _, line := range lines(f, file) {
			f.Add(line)
		}
	}
	files := shared(f)
	f.Fuzz(func(t *testing.T, template string) {
		all := map[string]string{"templates/x.yaml": template}
		maps.Copy(all, files)
		c := build("top", all)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := engine.Render(ctx, c, scope(t, c))
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%q does not end", template)
		}
		var size int
		for _, text := range out {
			size += len(text)
		}
		if size > 16<<20 {
			t.Fatalf("%q renders to %d bytes", template, size)
		}
	})
}
