// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// retryLost is how long after a cluster was lost, or refused a request, a check that is made once is looked at again.
const retryLost = 15 * time.Second

// outcome is how far a check is that is made once.
type outcome struct {
	// verdict is empty while it runs.
	verdict shipper.CheckVerdict
	message string
	// again is when to look again if no event comes first; 0 for never.
	again time.Duration
}

// once looks how far the tests or the Job of a check are, and begins them.
func (r *Reconciler) once(ctx context.Context, c *one) (time.Duration, error) {
	member, err := r.Fleet.Get(ctx, c.key.Cluster)
	if err != nil {
		c.state.lose(c.key.Cluster, retry.Brief(err))
		return retryLost, nil
	}
	c.state.regain(c.key.Cluster)
	var is outcome
	if c.run.Check.Tests != nil {
		is, err = r.tests(ctx, c)
	} else {
		is, err = r.job(ctx, c, member)
	}
	if err != nil {
		return 0, err
	}
	if is.verdict == "" {
		c.state.start(c.key, is.message)
		return is.again, nil
	}
	return r.add(c, check.Measurement{Time: r.Clock.Now(), Verdict: is.verdict, Message: is.message}), nil
}

// tests looks how far the chart's tests are. The installation reconciler runs them, each within its own time. Tests that have not begun say
// nothing about the Release.
func (r *Reconciler) tests(ctx context.Context, c *one) (outcome, error) {
	it := &shipper.InstallationTarget{}
	if err := r.client.Get(ctx, c.key.target(), it, client.UnsafeDisableDeepCopy); err != nil {
		return outcome{}, fmt.Errorf("reading InstallationTarget %s: %w", c.key.target(), err)
	}
	i := slices.IndexFunc(it.Status.Clusters, func(s shipper.ClusterInstallationStatus) bool { return s.Name == c.key.Cluster })
	if i < 0 {
		return outcome{message: "waits for the installation"}, nil
	}
	request := check.TestRequest(c.target, c.run)
	for _, t := range it.Status.Clusters[i].CheckTests {
		switch {
		case t.Request != request:
			continue
		case t.Phase == shipper.HookSucceeded:
			return outcome{verdict: shipper.VerdictPassed}, nil
		case t.Phase == shipper.HookHasFailed:
			return outcome{verdict: shipper.VerdictFailed, message: t.Message}, nil
		}
		return outcome{message: t.Message}, nil
	}
	return outcome{message: "waits for the tests"}, nil
}
