// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/check/measurement"
)

// atOnce is how many clusters a check over the fleet measures at the same time.
const atOnce = 8

// measure measures one check in one cluster, or over the fleet. An error means that the management cluster could not be asked; what servers
// answer is in the measurement.
func (r *Reconciler) measure(ctx context.Context, c *one) (check.Measurement, error) {
	begun, clusters := r.Clock.Now(), clustersOf(c)
	values := make([]measurement.Values, len(clusters))
	unmeasured, group := make([]error, len(clusters)), errgroup.Group{}
	group.SetLimit(atOnce)
	for i, cluster := range clusters {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, check.Timeout(&c.run.Check))
			defer cancel()
			where, err := r.input(ctx, c, cluster)
			if err == nil {
				values[i], unmeasured[i] = r.measurer.Measure(ctx, &c.run.Check, where)
			} else if why, is := errors.AsType[*unavailable](err); is {
				unmeasured[i], err = why, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return check.Measurement{}, err
	}
	for i, err := range unmeasured {
		if err == nil {
			continue
		}
		if c.key.Cluster == "" {
			err = fmt.Errorf("%s: %w", clusters[i], err)
		}
		return check.Measurement{Time: begun, Verdict: shipper.VerdictError, Message: err.Error()}, nil
	}
	return r.measurer.Judge(ctx, &c.run.Check, c.run.Args, values, begun), nil
}

// unavailable says why a check cannot be measured: its server or its Secret is missing, or may not be used.
type unavailable struct{ message string }

// Error is the message.
func (u *unavailable) Error() string { return u.message }

func unavailablef(format string, args ...any) *unavailable {
	return &unavailable{fmt.Sprintf(format, args...)}
}

// input is what a check is measured with in a cluster.
func (r *Reconciler) input(ctx context.Context, c *one, cluster string) (measurement.Input, error) {
	var known shipper.Cluster
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, &known); client.IgnoreNotFound(err) != nil {
		return measurement.Input{}, fmt.Errorf("reading Cluster %q: %w", cluster, err)
	}
	out, err := r.server(ctx, c, &known)
	out.Now = r.Clock.Now()
	out.Args = check.Arguments(c.target, c.run, &known, out.Now)
	return out, err
}
