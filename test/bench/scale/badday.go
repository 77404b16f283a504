// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
)

const (
	maxUseful = 5 // seconds from the start of a reconciler to its first write that somebody waits for
	maxTold   = 2 // seconds until all Applications tell of a RolloutBlock, or of its end
	// calm is how long a reconciler that has nothing to do is watched after its start.
	calm = 15 * time.Second
)

// restart kills the reconciler twice: once there is nothing to do, and once somebody waits.
func (s *stage) restart(ctx context.Context) ([]table.Line, error) {
	of := fmt.Sprintf("%d Applications on %d clusters, ", len(s.keys), s.clusters)
	before, err := s.Count()
	if err != nil {
		return nil, err
	}
	s.Pod.Reconciler.Kill()
	if err := s.Pod.StartReconciler(ctx); err != nil {
		return nil, err
	}
	if _, err := s.AtRest(ctx, calm); err != nil {
		return nil, err
	}
	after, err := s.Count()
	if err != nil {
		return nil, err
	}
	s.Pod.Reconciler.Kill()
	if err := s.upgrade(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.Pod.StartReconciler(ctx); err != nil {
		return nil, err
	}
	if err := s.upgraded(ctx); err != nil {
		return nil, err
	}
	done := time.Since(began)
	if _, err := s.Count(); err != nil {
		return nil, err
	}
	return []table.Line{
		{Row: "restart", Of: of + "writes that nobody needs", Ours: float64(after.Minus(before).Writes), Most: table.Goal(0)},
		{Row: "restart", Of: of + "reads", Ours: float64(after.Minus(before).Reads)},
		{Row: "restart", Of: of + "to the first useful write", Ours: s.FirstWrite().Sub(began).Seconds(), Unit: table.Seconds,
			Most: table.Goal(maxUseful)},
		{Row: "restart", Of: of + "to the end of an upgrade", Ours: done.Seconds(), Unit: table.Seconds},
	}, nil
}

// block stops everything, and lets it go on.
func (s *stage) block(ctx context.Context) ([]table.Line, error) {
	of := fmt.Sprintf("%d Applications, ", len(s.keys))
	b := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "bench"},
		Spec:       shipper.RolloutBlockSpec{Message: "measured", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "bench"}},
	}
	began := time.Now()
	if err := s.Management.Create(ctx, b); err != nil {
		return nil, err
	}
	if err := s.blocked(ctx, true); err != nil {
		return nil, err
	}
	told := time.Since(began)
	began = time.Now()
	if err := s.Management.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err := s.blocked(ctx, false); err != nil {
		return nil, err
	}
	return []table.Line{
		{Row: "block", Of: of + "all told", Ours: told.Seconds(), Unit: table.Seconds, Most: table.Goal(maxTold)},
		{Row: "block", Of: of + "all told of its end", Ours: time.Since(began).Seconds(), Unit: table.Seconds, Most: table.Goal(maxTold)},
	}, nil
}

// conditionOf is the status of the condition that tells whether an Application is blocked; nil when there is none.
func conditionOf(app *shipper.Application) *string {
	for _, c := range app.Status.Conditions {
		if c.Type == shipper.ApplicationBlocked {
			return ptr.To(string(c.Status))
		}
	}
	return nil
}
