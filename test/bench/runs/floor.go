// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/pod"
)

// floor is how long the same deliveries take by plain writes, while no reconciler runs: two creates and five status writes each. It returns
// the time to the end of all, and to the last create of a first run.
func (r Runs) floor(ctx context.Context, w *world.World) (took [2]time.Duration, err error) {
	w.Pod.Reconciler.Kill()
	o, err := newYards(ctx, w, "floor")
	if err != nil {
		return took, err
	}
	file, err := w.Fleet.Management.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	if err != nil {
		return took, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return took, fmt.Errorf("reading the kubeconfig of Shipper: %w", err)
	}
	config.QPS = -1
	c, err := pod.NewClient(config)
	if err != nil {
		return took, err
	}
	yard := &shipper.Shipyard{}
	if err := yaml.UnmarshalStrict([]byte(stages), &yard.Spec); err != nil {
		return took, fmt.Errorf("reading the shipyard: %w", err)
	}
	of := shipyard.Snapshot(yard)
	began := time.Now()
	created := make(chan *shipper.SequenceRun, r.Services)
	var both errgroup.Group
	both.Go(func() error {
		defer close(created)
		defer func() { took[1] = time.Since(began) }()
		return world.AtMost(writers, r.Services, func(i int) error {
			run := o.run(i, delivery)
			err := w.Management.Create(ctx, run)
			if err == nil {
				created <- run
			}
			return err
		})
	})
	for range workers {
		both.Go(func() error {
			for run := range created {
				if err := finish(ctx, c, run, of); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := both.Wait(); err != nil {
		return took, fmt.Errorf("by hand: %w", err)
	}
	took[0] = time.Since(began)
	fmt.Printf("%d deliveries by hand: %s\n", r.Services, took[0].Round(time.Millisecond))
	return took, nil
}

// finish writes the statuses of a run whose tasks pass, and creates and finishes the runs that follow.
func finish(ctx context.Context, c client.Client, run *shipper.SequenceRun, of *shipper.ShipyardSnapshot) error {
	var out *shipyard.Outcome
	for !shipyard.IsFinished(run) {
		was := run.DeepCopy()
		if run.Status.Resolved == nil {
			run.Status.Resolved = shipyard.Resolved(of, run.Spec.Stage, run.Spec.Sequence)
			run.Status.Resolved.Revision.UID = string(run.OwnerReferences[0].UID) // of the Shipyard
		}
		run.Status = shipyard.Plan(shipyard.Observed{Run: run, Outcome: out, Snapshot: of, Now: time.Now()}).Status
		if err := c.Status().Patch(ctx, run, client.MergeFrom(was)); err != nil {
			return fmt.Errorf("writing the status of run %s: %w", run.Name, err)
		}
		out = &shipyard.Outcome{Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded, Message: "nothing was measured"}
	}
	for i := range run.Status.Triggered {
		next := shipyard.FollowUp(run, &run.Status.Triggered[i])
		if err := c.Create(ctx, next); err != nil {
			return fmt.Errorf("creating run %s: %w", next.Name, err)
		}
		if err := finish(ctx, c, next, of); err != nil {
			return err
		}
	}
	return nil
}
