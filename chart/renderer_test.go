// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"testing"
	"time"
)

// expired is a ctx whose deadline has passed.
func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	t.Cleanup(cancel)
	return ctx
}

func TestOverdueRenderingKeepsItsChartOut(t *testing.T) {
	r := newRenderer(2)
	release, started := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := r.run(ctx, "slow", func() error {
		close(started)
		<-release
		return nil
	})
	if err == nil || err.Error() != "it did not render in time" || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the overdue rendering gives %v", err)
	}
	<-started
	err = r.run(t.Context(), "slow", func() error { return nil })
	if err == nil || err.Error() != "an earlier rendering of it still goes on" {
		t.Errorf("its chart gives %v", err)
	}
	if err := r.run(t.Context(), "other", func() error { return nil }); err != nil {
		t.Errorf("another chart gives %v", err)
	}
	close(release)
	r.slots <- struct{}{} // both slots are free again only when the overdue rendering has ended
	r.slots <- struct{}{}
	if err := r.run(expired(t), "slow", func() error { return nil }); err == nil || err.Error() != "there was no room to render it in time" {
		t.Errorf("with no slot free it gives %v", err)
	}
	<-r.slots
	if err := r.run(t.Context(), "slow", func() error { return nil }); err != nil {
		t.Errorf("afterwards it gives %v", err)
	}
}

func TestRenderingThatNobodyWaitsForIsNotOverdue(t *testing.T) {
	r := newRenderer(2)
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	err := r.run(ctx, "left", func() error {
		cancel()
		<-release
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := r.run(t.Context(), "left", func() error { return nil }); err != nil {
		t.Errorf("its chart gives %v", err)
	}
}
