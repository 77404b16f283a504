// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilReturnsWhatWasWrongLast(t *testing.T) {
	for sentence, tc := range map[string]struct {
		look func(ctx context.Context, after time.Duration) error
		want string
	}{
		"it is so at once": {func(context.Context, time.Duration) error { return nil }, ""},
		"it is so after a while": {func(_ context.Context, after time.Duration) error {
			if after < 30*time.Second {
				return errors.New("not yet")
			}
			return nil
		}, ""},
		"it never is": {func(context.Context, time.Duration) error { return errors.New("not yet") }, "waiting for it: not yet"},
		"the last look takes too long": {func(ctx context.Context, after time.Duration) error {
			if after < 30*time.Second {
				return errors.New("not yet")
			}
			<-ctx.Done()
			return ctx.Err()
		}, "waiting for it: not yet"},
		"the first look takes too long": {func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return ctx.Err()
		}, "waiting for it: context deadline exceeded"},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), Patience)
				defer cancel()
				began, got := time.Now(), ""
				err := Until(ctx, "it", func(ctx context.Context) error { return tc.look(ctx, time.Since(began)) })
				if err != nil {
					got = err.Error()
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestALongWaitIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		report := Progress(func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }, "it")
		for range 40 {
			time.Sleep(time.Second)
			report(errors.New("not yet"))
		}
		report(nil)
		want := []string{"still waiting for it, after 15s: not yet", "still waiting for it, after 30s: not yet"}
		if !slices.Equal(said, want) {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}

func TestAWaitOfACleanupWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() {
			began := time.Now()
			Eventually(t, "it", func(ctx context.Context) error {
				if time.Since(began) < 30*time.Second {
					return errors.New("not yet")
				}
				return ctx.Err()
			})
		})
	})
}

func TestALongWaitLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var looks []time.Duration
		Eventually(t, "it", func(context.Context) error {
			looks = append(looks, time.Since(began))
			if time.Since(began) < time.Minute {
				return errors.New("not yet")
			}
			return nil
		})
		for i, at := range looks[1:] {
			if rest, late := at-looks[i], max(looks[i]/8, 100*time.Millisecond); rest > min(late, time.Second) {
				t.Errorf("it looks after %s and then after %s", looks[i], at)
			}
		}
		if len(looks) > 90 {
			t.Errorf("it looked %d times in a minute", len(looks))
		}
	})
}
