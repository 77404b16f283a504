// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// rollout is an Application of Shipper's, on the first clusters.
type rollout struct {
	management client.WithWatch
	app        *shipper.Application
	upgrades   int
	release    string // the newest
}

// newRollout makes the Application and its first Release, with all of its capacity and traffic.
func newRollout(ctx context.Context, w *world, namespace string, clusters int, replicas int32) (*rollout, error) {
	if err := w.makeNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	for _, c := range w.clusters[:clusters] {
		if err := makeNamespace(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	values := shipper.ChartValues{"replicaCount": int64(replicas), "upgrade": int64(0)}
	env := shipper.ReleaseEnvironment{
		Chart:    shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: w.charts.URL},
		Values:   &values,
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step("full on", 0, 100, 0, 100)}},
	}
	for i := range clusters {
		env.ClusterRequirements.Regions = append(env.ClusterRequirements.Regions, shipper.RegionRequirement{Name: region(i)})
	}
	r := &rollout{management: w.management, app: &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec:       shipper.ApplicationSpec{Template: env},
	}}
	if err := r.management.Create(ctx, r.app); err != nil {
		return nil, err
	}
	if err := r.awaitStep(ctx, 0); err != nil {
		return nil, err
	}
	r.app.Spec.Template.Strategy.Steps = []shipper.RolloutStrategyStep{
		step("staging", 100, 1, 100, 0), step("50/50", 50, 50, 50, 50), step("full on", 0, 100, 0, 100),
	}
	return r, nil
}

func step(name string, capacityOld, capacityNew, trafficOld, trafficNew int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: capacityOld, Contender: capacityNew},
		Traffic:  shipper.RolloutStrategyStepValue{Incumbent: trafficOld, Contender: trafficNew},
	}
}

// steps are those of an upgrade to the next version: staging, 50/50, full on.
func (r *rollout) steps() []func(context.Context) error {
	return []func(context.Context) error{r.upgrade,
		func(ctx context.Context) error { return r.advance(ctx, 1) },
		func(ctx context.Context) error { return r.advance(ctx, 2) },
	}
}

// upgrade edits the template, and waits until the Release this makes has achieved its first step.
func (r *rollout) upgrade(ctx context.Context) error {
	r.upgrades++
	latest := &shipper.Application{}
	if err := r.management.Get(ctx, client.ObjectKeyFromObject(r.app), latest); err != nil {
		return err
	}
	before := latest.DeepCopy()
	(*r.app.Spec.Template.Values)["upgrade"] = int64(r.upgrades) // nothing reads it, but it makes a Release
	latest.Spec.Template = *r.app.Spec.Template.DeepCopy()
	r.release = ""
	if err := r.management.Patch(ctx, latest, client.MergeFrom(before)); err != nil {
		return err
	}
	return r.awaitStep(ctx, 0)
}

// advance asks for a step and waits until it is achieved.
func (r *rollout) advance(ctx context.Context, step int32) error {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: r.app.Namespace, Name: r.release}}
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	if err := r.management.Patch(ctx, rel, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return err
	}
	return r.awaitStep(ctx, step)
}

// awaitStep waits, by watch, until the newest Release has achieved a step.
func (r *rollout) awaitStep(ctx context.Context, step int32) error {
	watch, err := r.management.Watch(ctx, &shipper.ReleaseList{}, client.InNamespace(r.app.Namespace))
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		rel, ok := event.Object.(*shipper.Release)
		if !ok || event.Type == apiwatch.Deleted || rel.Annotations[shipper.ReleaseGenerationAnnotation] != fmt.Sprint(r.upgrades) {
			continue
		}
		r.release = rel.Name
		if rel.Spec.TargetStep == step && rel.Status.ObservedGeneration == rel.Generation &&
			rel.Status.AchievedStep != nil && rel.Status.AchievedStep.Step == step {
			return nil
		}
	}
	return errors.Join(errors.New("the watch of Releases has ended"), ctx.Err())
}
