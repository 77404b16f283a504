// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"
)

func TestGuardTurnsPanicsIntoErrors(t *testing.T) {
	_, err := Guard(func() (int, error) { panic("oh " + strings.Repeat("x", 300)) })
	failure, ok := errors.AsType[*Unusable](err)
	if !ok || !strings.HasPrefix(failure.Error(), "cannot be read: oh xxx") || len(failure.Error()) > 250 {
		t.Errorf("got %v", err)
	}
}
