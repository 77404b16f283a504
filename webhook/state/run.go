// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of what one review lists from the API server: runs in all, of which retention keeps fewer, and whole ones at a time, which may
// have half a megabyte each.
const (
	maxListed = 500
	pageSize  = 10
)

// ShipyardNow is the Shipyard, read from the API server; nil when there is none.
func (f *Reader) ShipyardNow(ctx context.Context, key types.NamespacedName) (*shipper.Shipyard, error) {
	if f.live == nil || key.Name == "" {
		return get(ctx, f, f.cached.Shipyards, key, &shipper.Shipyard{})
	}
	return read(ctx, f.live, key, &shipper.Shipyard{})
}

// Shipyards are those of all namespaces, in no order.
func (f *Reader) Shipyards() []*shipper.Shipyard {
	known := f.cached.Shipyards.List()
	out := make([]*shipper.Shipyard, 0, len(known))
	for _, o := range known {
		if one, ok := o.(*shipper.Shipyard); ok {
			out = append(out, one)
		}
	}
	return out
}

// SequenceRunNow is the run with all its fields, read from the API server; nil when there is none.
func (f *Reader) SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error) {
	if f.live == nil || key.Name == "" {
		return get(ctx, f, f.cached.Runs, key, &shipper.SequenceRun{})
	}
	return read(ctx, f.live, key, &shipper.SequenceRun{})
}

// Runs are those of a Shipyard as Strip leaves them, in no order.
func (f *Reader) Runs(of types.NamespacedName) ([]*shipper.SequenceRun, error) {
	return list[*shipper.SequenceRun](f.cached.Runs, byShipyard, of.String())
}

// RunsIn are the runs of a namespace as Strip leaves them, in no order.
func (f *Reader) RunsIn(namespace string) ([]*shipper.SequenceRun, error) {
	return list[*shipper.SequenceRun](f.cached.Runs, cache.NamespaceIndex, namespace)
}

// RunsNow are the runs of a Shipyard in a stage for a service as Strip leaves them, read from the API server by their labels.
func (f *Reader) RunsNow(ctx context.Context, of types.NamespacedName, stage, service string) ([]*shipper.SequenceRun, error) {
	if f.live == nil {
		return f.Runs(of)
	}
	var out []*shipper.SequenceRun
	labels := client.MatchingLabels{shipper.ShipyardLabel: of.Name, shipper.StageLabel: stage, shipper.ServiceLabel: service}
	for next := ""; len(out) < maxListed; {
		var page shipper.SequenceRunList
		err := f.live.List(ctx, &page, client.InNamespace(of.Namespace), labels, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing the runs of stage %s of Shipyard %s: %w", stage, of, err)
		}
		for i := range page.Items {
			stripRun(&page.Items[i])
			out = append(out, &page.Items[i])
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	return out, nil
}

// WholeApplicationNow is the Application with all its fields, which the cache lacks, read from the API server; nil when there is none.
func (f *Reader) WholeApplicationNow(ctx context.Context, key types.NamespacedName) (*shipper.Application, error) {
	if f.live == nil || key.Name == "" {
		return nil, nil
	}
	return read(ctx, f.live, key, &shipper.Application{})
}

// shipyardOf is the key of the Shipyard of a run.
func shipyardOf(o any) ([]string, error) {
	run, ok := o.(*shipper.SequenceRun)
	if !ok {
		return nil, nil
	}
	return []string{types.NamespacedName{Namespace: run.Namespace, Name: run.Spec.Shipyard}.String()}, nil
}

// stripRun removes what no other run is judged by, how far its tasks are too; what stays has about one KiB.
func stripRun(run *shipper.SequenceRun) {
	shipyard.Strip(run)
	was := run.Status
	run.Status = shipper.SequenceRunStatus{Resolved: was.Resolved, Result: was.Result, StartTime: was.StartTime, FinishTime: was.FinishTime}
	if c := shipper.FindCondition(was.Conditions, shipper.RunFinished); c != nil {
		run.Status.Conditions = []shipper.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
	}
}
