// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"shipper.dev/shipper/outward/boundedcel"
)

func TestATextOfOneNamespaceWaitsForOneOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := context.WithValue(t.Context(), compilersKey{}, compilers())
		release := make(chan struct{})
		order := make(chan string, 2000)
		compile := func(ctx context.Context, namespace string) {
			go func() {
				_ = Compile(ctx, namespace, func() error {
					<-release
					order <- namespace
					return nil
				})
			}()
		}
		for range 1000 {
			compile(reviews, "many")
		}
		synctest.Wait()
		compile(reviews, "other")
		for range 1000 {
			compile(reviews, "another")
		}
		synctest.Wait()
		before := 0
		for {
			release <- struct{}{}
			synctest.Wait()
			if <-order == "other" {
				break
			}
			before++
		}
		if before > 5 { // two that were begun, and a turn of each namespace
			t.Errorf("it waited for %d texts of other namespaces", before)
		}
		close(release)
	})
}

func TestNothingIsCompiledOnceTheRequestIsGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := Compile(ctx, "a", func() error { t.Error("it was compiled"); return nil }); !errors.Is(err, boundedcel.ErrBusy) {
			t.Fatalf("got %v", err)
		}
	}
}
