// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"testing"
)

func TestAsErrorKeepsWhatItIsGiven(t *testing.T) {
	if got := AsError(context.Canceled); !got.Retry || !errors.Is(got, context.Canceled) {
		t.Errorf("got %+v", got)
	}
}
