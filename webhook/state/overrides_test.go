// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/state"
)

// overridePages answers lists of ResourceOverrides by pages of the size that is asked for, once block is closed.
type overridePages struct {
	client.Reader
	overrides int
	block     chan struct{}
	lists     atomic.Int32
	sizes     []int64
}

func (p *overridePages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	p.lists.Add(1)
	<-p.block
	var o client.ListOptions
	o.ApplyOptions(opts)
	p.sizes = append(p.sizes, o.Limit)
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+int(o.Limit), p.overrides)
	out := list.(*shipper.ResourceOverrideList)
	for i := from; i < to; i++ {
		var one shipper.ResourceOverride
		one.Namespace, one.Name, one.Spec.ApplicationNames = o.Namespace, fmt.Sprint(i), []string{"web"}
		one.Spec.Rules = []shipper.OverrideRule{{Delete: true}}
		one.Spec.Resources = []shipper.OverriddenResource{{Kind: "ConfigMap"}, {Kind: "Secret"}}
		out.Items = append(out.Items, one)
	}
	if to < p.overrides {
		out.Continue = strconv.Itoa(to)
	}
	return nil
}

// TestOverridesAreReadAFewAtATime: a namespace may contain many of 64 KiB. Lists of all of them would exhaust the memory of the webhook.
func TestOverridesAreReadAFewAtATime(t *testing.T) {
	for sentence, tc := range map[string]struct {
		there, want int
		sizes       []int64
	}{
		"all of a namespace":           {120, 120, []int64{50, 50, 50}},
		"not more than there may be":   {1000, 250, []int64{50, 50, 50, 50, 50}},
		"none where there are no more": {0, 0, []int64{50}},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := &overridePages{overrides: tc.there, block: make(chan struct{})}
			close(server.block)
			got, err := state.New(state.NewIndexers(), server, "global").OverridesNow(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.want, tc.sizes}, []any{len(got), server.sizes}); diff != "" {
				t.Errorf("outlines, sizes of the pages (-want +got):\n%s", diff)
			}
			if slices.ContainsFunc(got, func(o override.Outline) bool {
				return o.Spec.Rules != nil || o.Spec.Resources != nil || o.Size.Pairs != 2 || o.Spec.ApplicationNames[0] != "web"
			}) {
				t.Errorf("not outlines alone: %v", got[0])
			}
		})
	}
}

// TestReviewsOfANamespaceShareAList: parallel writes of a user must not multiply the lists.
func TestReviewsOfANamespaceShareAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &overridePages{overrides: 1, block: make(chan struct{})}
		reader := state.New(state.NewIndexers(), server, "global")
		for range 64 {
			go func() {
				if got, err := reader.OverridesNow(t.Context(), "shop"); len(got) != 1 || err != nil {
					t.Errorf("%d, %v", len(got), err)
				}
			}()
		}
		synctest.Wait()
		close(server.block)
		synctest.Wait()
		if got := server.lists.Load(); got != 1 {
			t.Errorf("%d lists", got)
		}
	})
}
