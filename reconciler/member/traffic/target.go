// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/targetstatus"
	"shipper.dev/shipper/reconciler/targets"
)

// Target is how TrafficTargets report what came of the work in their clusters.
type Target struct {
	client  client.Client
	outages *outages
}

var _ targetstatus.Kind[*shipper.TrafficTarget, Outcome] = &Target{}

// NewTarget makes a Target.
func NewTarget(c client.Client) *Target { return &Target{client: c, outages: newOutages()} }

// Metrics are those about TrafficTargets.
func (t *Target) Metrics() prometheus.Collector { return t.outages }

// Clusters names those that the status is about.
func (t *Target) Clusters(tt *shipper.TrafficTarget) []string {
	out := make([]string, len(tt.Spec.Clusters))
	for i := range tt.Spec.Clusters {
		out[i] = tt.Spec.Clusters[i].Name
	}
	return out
}

// Prepare ends a target whose Release is gone.
func (t *Target) Prepare(ctx context.Context, tt *shipper.TrafficTarget) (ended bool, err error) {
	if ended, err = targets.End(ctx, t.client, tt); ended {
		t.outages.forget(client.ObjectKeyFromObject(tt))
	}
	return ended, err
}

// Report sets the status.
func (t *Target) Report(
	tt *shipper.TrafficTarget, results map[string]Outcome, now time.Time,
) (turned bool, again time.Duration) {
	var outcomes []Outcome
	var general error
	for _, want := range tt.Spec.Clusters {
		one, known := results[want.Name]
		if !known {
			one.missing = true
		}
		one.want = want
		if outcomes = append(outcomes, one); one.invalid != nil {
			general = one.invalid
		}
	}
	if general == nil {
		again = t.outages.observe(tt, outcomes, now)
	}
	before := said(tt)
	tt.Status = status(tt, outcomes, general, now)
	return report.Turned(before, said(tt)), again
}

// Events are those about a written status, of the target, and of its Release and Application.
func (t *Target) Events(ctx context.Context, was, is *shipper.TrafficTarget) []targetstatus.Events {
	out := []targetstatus.Events{{About: is, List: changes(was, is)}}
	lost := outageEvents(was, is)
	if len(lost) == 0 {
		return out
	}
	rel, app := &shipper.Release{}, &shipper.Application{} // those that are gone get none
	if t.client.Get(ctx, client.ObjectKey{Namespace: is.Namespace, Name: releaseOf(is)}, rel) == nil {
		out = append(out, targetstatus.Events{About: rel, List: lost})
	}
	if t.client.Get(ctx, client.ObjectKey{Namespace: is.Namespace, Name: is.Labels[shipper.AppLabel]}, app) == nil {
		out = append(out, targetstatus.Events{About: app, List: lost})
	}
	return out
}

// Finish has nothing to do.
func (t *Target) Finish(context.Context, *shipper.TrafficTarget, map[string]Outcome) (ended bool, err error) {
	return false, nil
}

// Forget a target that is gone.
func (t *Target) Forget(key types.NamespacedName) { t.outages.forget(key) }
