// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

const (
	// statusInterval is how often the status says how far checks are that are not decided.
	statusInterval = 30 * time.Second
	// gather is how long the first status of a run waits for the first measurements.
	gather = time.Second
	// maxMessage bounds, in bytes, the message of a condition.
	maxMessage = 1024
)

// write writes the status if it is due, and returns how long it waits otherwise; 0 when there is nothing to write.
func (r *Reconciler) write(ctx context.Context, c *one) (time.Duration, error) {
	wait, changed := c.state.due(r.Clock.Now())
	if !changed || wait > 0 {
		return wait, nil
	}
	select {
	case c.state.writing <- struct{}{}:
		defer func() { <-c.state.writing }()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting to write the status of CheckTarget %s: %w", c.key.target(), ctx.Err())
	}
	if _, changed = c.state.due(r.Clock.Now()); !changed { // another pass has written it
		return 0, nil
	}
	was := &shipper.CheckTarget{}
	err := r.client.Get(ctx, c.key.target(), was)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("reading CheckTarget %s: %w", c.key.target(), err)
	case was.UID != c.state.uid || was.Spec.Run != c.state.run:
		return 0, nil
	}
	is := was.DeepCopy()
	results, lost := c.state.take(r.Clock.Now())
	setStatus(is, results, lost, metav1.NewTime(r.Clock.Now()))
	if _, err := report.PatchStatus(ctx, r.client, is, was); err != nil {
		c.state.writeAgain()
		return 0, fmt.Errorf("writing the status of CheckTarget %s: %w", c.key.target(), err)
	}
	return 0, nil
}

// setStatus fills in the status of a target.
func setStatus(target *shipper.CheckTarget, results []shipper.CheckResult, lost map[string]string, now metav1.Time) {
	target.Status.ObservedGeneration, target.Status.Run = target.Generation, target.Spec.Run
	target.Status.Results = check.Shortened(results)
	ready := shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	if state := check.StateOf(target); !state.Passed {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, shipper.ChecksNotPassed, report.Shorten(state.Awaited, maxMessage)
	}
	operational := shipper.Condition{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}
	if len(lost) > 0 {
		var texts []string
		for _, cluster := range slices.Sorted(maps.Keys(lost)) {
			texts = append(texts, cluster+": "+lost[cluster])
		}
		operational.Status, operational.Reason = corev1.ConditionFalse, shipper.ClustersNotOperational
		operational.Message = report.Shorten(strings.Join(texts, "; "), maxMessage)
	}
	for _, c := range []shipper.Condition{operational, ready} {
		target.Status.Conditions = shipper.SetCondition(target.Status.Conditions, c, now)
	}
}
