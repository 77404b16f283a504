// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// perApplication is how many Releases an Application has.
const perApplication = 20

// concurrency is how many write at a time where more than one does.
const concurrency = 16

// makeReleases makes the Applications that are written to on both sides, with their Releases, and others up to n.
func (w *env) makeReleases(ctx context.Context, n int) error {
	var jobs []func() error
	for _, namespace := range []string{ours, noop} {
		for i := range concurrency {
			jobs = append(jobs, func() error { return w.makeApplication(ctx, namespace, i) })
		}
	}
	for i := range max(0, n/perApplication-2*concurrency) {
		jobs = append(jobs, func() error { return w.makeApplication(ctx, background, i) })
	}
	return inParallel(jobs)
}

// makeApplication makes an Application with its Releases, as they are when the gate has let them through.
func (w *env) makeApplication(ctx context.Context, namespace string, i int) error {
	app := ask.Application(ask.Pinned("~0.0"), func(app *shipper.Application) {
		app.Namespace, app.Name, app.UID = namespace, fmt.Sprintf("app-%d", i), ""
		app.Spec.Template.Chart.RepoURL = w.charts.URL
		app.Annotations[shipper.AppChartRepoAnnotation] = w.charts.URL
		app.Annotations[shipper.AppRequestedByAnnotation] = "admin"
	})
	if err := w.create(ctx, app); err != nil {
		return err
	}
	var rels []*shipper.Release
	for n := range perApplication {
		(*app.Spec.Template.Values)["replicaCount"] = int64(1000 + n)
		rel, err := stamp.Release(app, rels)
		if err != nil {
			return err
		}
		if err := w.create(ctx, rel); err != nil {
			return err
		}
		rels = append(rels, rel)
	}
	return nil
}

// create tries again while the API server has not heard yet where the webhooks are by now.
func (w *env) create(ctx context.Context, object client.Object) error {
	return w.await(ctx, func() (bool, error) {
		err := w.client.Create(ctx, object)
		if apierrors.IsInternalError(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// makeBlocks adds RolloutBlocks until there are n. Nine in ten are in other namespaces; the tenth holds everywhere, but
// not for what is written here, since that takes a look at each write.
func (w *env) makeBlocks(ctx context.Context, n int) error {
	var jobs []func() error
	for ; w.blocks < n; w.blocks++ {
		i := w.blocks
		jobs = append(jobs, func() error {
			b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
			b.Namespace, b.Name = background, fmt.Sprintf("block-%d", i)
			if i%10 == 0 {
				b.Namespace = shipper.GlobalBlocksNamespace
				b.Spec.Scope = &shipper.RolloutBlockScope{Charts: []string{"httpd"}}
			}
			return w.client.Create(ctx, b)
		})
	}
	return inParallel(jobs)
}

// inParallel does all jobs, some at a time, and returns the first error.
func inParallel(jobs []func() error) error {
	var all errgroup.Group
	all.SetLimit(concurrency)
	for _, job := range jobs {
		all.Go(job)
	}
	return all.Wait()
}

// judged reports whether Shipper's webhooks are asked about what is in their namespace.
func (w *env) judged(ctx context.Context) (bool, error) {
	rel, err := w.newest(ctx, ours, 0)
	if err != nil {
		return false, err
	}
	err = w.client.Patch(ctx, rel, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetStep":7}}`)), client.DryRunAll)
	if apierrors.IsInvalid(err) {
		return true, nil
	}
	return false, err
}

// newest is the newest Release of an Application.
func (w *env) newest(ctx context.Context, namespace string, i int) (*shipper.Release, error) {
	rels := &shipper.ReleaseList{}
	err := w.client.List(ctx, rels, client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: fmt.Sprintf("app-%d", i)})
	if err != nil {
		return nil, err
	}
	var all []*shipper.Release
	for i := range rels.Items {
		all = append(all, &rels.Items[i])
	}
	ordered, _ := stamp.SortByGeneration(all)
	if len(ordered) == 0 {
		return nil, fmt.Errorf("application app-%d in %s has no Release", i, namespace)
	}
	return ordered[len(ordered)-1], nil
}
