// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/reconciler/retry"
)

func TestMessagesAboutClustersAreBrief(t *testing.T) {
	for sentence, tc := range map[string]struct {
		err  error
		want string
	}{
		"no error has no message":  {nil, ""},
		"what fits stays":          {errors.New(strings.Repeat("x", 1024)), strings.Repeat("x", 1024)},
		"what does not fit is cut": {errors.New(strings.Repeat("x", 8<<20)), strings.Repeat("x", 1021) + "…"},
		"no rune is cut in two":    {errors.New(strings.Repeat("ü", 513)), strings.Repeat("ü", 510) + "…"},
		"lines are joined": {
			errors.Join(errors.New("a is forbidden: grants:\n{get}\n\n{list}"), errors.New("b is late")),
			"a is forbidden: grants: {get}; {list}; b is late",
		},
		"bytes that are no rune are lost": {errors.New("\xff" + strings.Repeat("x", 1024)), strings.Repeat("x", 1020) + "…"},
	} {
		got := retry.Brief(tc.err)
		if diff := cmp.Diff(tc.want, got); diff != "" || len(got) > 1024 {
			t.Errorf("%s: %d bytes, -want +got:\n%s", sentence, len(got), diff)
		}
	}
}
