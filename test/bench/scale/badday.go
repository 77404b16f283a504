// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

const (
	maxUseful = 5   // seconds from the start of a reconciler to its first write of a rollout under way
	maxTold   = 1.3 // of the time until all Applications and their Releases report a RolloutBlock, or its end, to that of as many writes
	// calm is how long a reconciler that has nothing to do is watched after its start.
	calm = 15 * time.Second
)

// restart kills the reconciler twice: once with nothing to do, and once with a rollout under way.
func (s *stage) restart(ctx context.Context, out io.Writer) ([]table.Line, error) {
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
	fmt.Fprintln(out, "what a reconciler with nothing to do asked for after its start:")
	after.Minus(before).Explain(out)
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
		{Row: "restart", Of: of + "needless writes", Ours: float64(after.Minus(before).Writes), Most: table.Goal(0)},
		{Row: "restart", Of: of + "reads", Ours: float64(after.Minus(before).Reads)},
		{Row: "restart", Of: of + "to the first useful write", Ours: s.FirstWrite().Sub(began).Seconds(), Unit: table.Seconds,
			Most: table.Goal(maxUseful)},
		{Row: "restart", Of: of + "to the end of an upgrade", Ours: done.Seconds(), Unit: table.Seconds},
	}, nil
}

// block stops everything, and lets it go on.
func (s *stage) block(ctx context.Context, out io.Writer) ([]table.Line, error) {
	floor, err := s.blockFloor(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.AtRest(ctx, calm); err != nil {
		return nil, err
	}
	before, err := s.Count()
	if err != nil {
		return nil, err
	}
	b := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "bench"},
		Spec:       shipper.RolloutBlockSpec{Message: "measured", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "bench"}},
	}
	profiled := s.Processors(ctx, "block", calm)
	lines, of := []table.Line(nil), fmt.Sprintf("%d Applications, ", len(s.keys))
	for what, write := range []func() error{
		func() error { return s.Management.Create(ctx, b) },
		func() error { return client.IgnoreNotFound(s.Management.Delete(ctx, b)) },
	} {
		began := time.Now()
		if err := write(); err != nil {
			return nil, err
		}
		if err := s.blocked(ctx, what == 0); err != nil {
			return nil, err
		}
		lines = append(lines, table.Line{Row: "block", Of: of + []string{"reported on all", "end reported on all"}[what],
			Ours: time.Since(began).Seconds(), Floor: floor.Seconds(), Unit: table.Seconds, Most: table.Goal(maxTold)})
	}
	if err := profiled(); err != nil {
		return nil, err
	}
	after, err := s.Count()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "what a RolloutBlock and its end took:")
	after.Minus(before).Explain(out)
	return lines, nil
}

// blockFloor is how long it takes to write a condition of all Applications and their Releases while no reconciler runs. Afterwards one
// does.
func (s *stage) blockFloor(ctx context.Context) (time.Duration, error) {
	s.Pod.Reconciler.Kill()
	blocked := shipper.Condition{Type: shipper.ApplicationBlocked, Status: "True", Reason: shipper.RolloutsBlocked, Message: "measured"}
	began := time.Now()
	err := world.AtMost(writers, 2*len(s.keys), func(i int) error {
		key := s.keys[i/2]
		if i%2 == 0 {
			was := s.sight.Application(key)
			app := was.DeepCopy()
			app.Status.Conditions = shipper.SetCondition(app.Status.Conditions, blocked, metav1.Now())
			return s.Management.Status().Patch(ctx, app, client.MergeFrom(was))
		}
		was := s.sight.Newest(key)
		rel := was.DeepCopy()
		rel.Status.Conditions = shipper.SetCondition(rel.Status.Conditions, blocked, metav1.Now())
		return s.Management.Status().Patch(ctx, rel, client.MergeFrom(was))
	})
	if err != nil {
		return 0, err
	}
	if err := s.blocked(ctx, true); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := s.Pod.StartReconciler(ctx); err != nil {
		return 0, err
	}
	return took, s.blocked(ctx, false)
}
