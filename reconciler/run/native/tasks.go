// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
)

// Options of Tasks.
type Options struct {
	// Client reads from the cache and writes as Shipper; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Config is how runners connect.
	Config *rest.Config
	// Histories finds the Releases of an Application.
	Histories *history.Reader
	// SharedChecks is the namespace with the Checks that all namespaces share.
	SharedChecks string
	// Clock is the time.
	Clock clock.PassiveClock
}

// Tasks does tasks.
type Tasks struct {
	client       client.Client
	live         client.Reader
	runners      *runners
	histories    *history.Reader
	sharedChecks string
	clock        clock.PassiveClock
}

// New returns Tasks.
func New(o Options) *Tasks {
	return &Tasks{
		client: o.Client, live: o.Live, runners: newRunners(o.Config, o.Client), histories: o.Histories,
		sharedChecks: o.SharedChecks, clock: o.Clock,
	}
}

// decisions are functions that decide about a task, by its name. The task approval is decided with the run.
var decisions = map[string]func(*observed) action{
	shipyard.TaskDeployment: deploy,
	shipyard.TaskRelease:    release,
	shipyard.TaskRollback:   rollback,
	shipyard.TaskTest:       test,
	shipyard.TaskEvaluation: evaluate,
	shipyard.TaskEvaluate:   evaluate,
}

// Do advances a task and returns its outcome. An error means that the API server could not be asked: the next pass does the same again.
func (t *Tasks) Do(ctx context.Context, run, before *shipper.SequenceRun, task *shipper.TaskStatus) (shipyard.Outcome, error) {
	decide, known := decisions[task.Name]
	if !known {
		return fails("Shipper does not do task %q: name one of %v", task.Name, shipyard.Native).outcome, nil
	}
	// What a run says of an Application is read by users of its namespace: it says no more than its runner may read.
	about := &observed{run: run, key: shipyard.ApplicationOfRun(run)}
	if err := t.permitted(ctx, run, "get", about.key); err != nil {
		return t.refused(about, shipyard.Outcome{}, err)
	}
	o, err := t.observe(ctx, run, before, task)
	if err != nil {
		return shipyard.Outcome{}, err
	}
	a := decide(o)
	if a.apply != nil || a.confirm { // the cache has no managedFields, and may be old
		if o.app, err = t.application(ctx, t.live, o.key); err != nil {
			return shipyard.Outcome{}, err
		}
		a = decide(o)
	}
	return t.write(ctx, o, a)
}

// observe reads what a decision is made of.
func (t *Tasks) observe(ctx context.Context, run, before *shipper.SequenceRun, task *shipper.TaskStatus) (*observed, error) {
	sequence := shipyard.OwnSequence(run)
	o := &observed{
		run: run, before: before, task: task, key: shipyard.ApplicationOfRun(run), shared: t.sharedChecks, now: t.clock.Now(),
		of: &sequence.Tasks[shipyard.TaskIndex(sequence, shipyard.NameOf(task))],
	}
	var err error
	if o.app, err = t.application(ctx, t.client, o.key); err != nil {
		return nil, err
	}
	all, err := t.histories.Releases(ctx, o.key)
	if err != nil {
		return nil, fmt.Errorf("finding the Releases of task %s: %w", task.Name, err)
	}
	if o.app != nil {
		all = stamp.Own(o.app, all)
	}
	o.releases, _ = stamp.SortByGeneration(all)
	return o, t.observeMeasured(ctx, o)
}

// observeMeasured reads what tests and evaluations are made of.
func (t *Tasks) observeMeasured(ctx context.Context, o *observed) error {
	if o.task.Name != shipyard.TaskTest && o.task.Name != shipyard.TaskEvaluation && o.task.Name != shipyard.TaskEvaluate {
		return nil
	}
	key := types.NamespacedName{Namespace: o.key.Namespace, Name: checksName(o.task)}
	checks := &shipper.CheckTarget{}
	switch err := t.client.Get(ctx, key, checks); {
	case err == nil:
		o.checks = checks
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading CheckTarget %s: %w", key, err)
	}
	if rel := o.delivered(); rel != nil && o.task.Name == shipyard.TaskTest {
		it := &shipper.InstallationTarget{}
		switch err := t.client.Get(ctx, client.ObjectKeyFromObject(rel), it, client.UnsafeDisableDeepCopy); {
		case err == nil:
			o.installation = it
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading InstallationTarget %s/%s: %w", rel.Namespace, rel.Name, err)
		}
	}
	return t.findChecks(ctx, o)
}

// findChecks reads the Checks that an evaluation names, before it begins.
func (t *Tasks) findChecks(ctx context.Context, o *observed) error {
	found := map[types.NamespacedName]*shipper.Check{}
	o.find = func(key types.NamespacedName) *shipper.Check { return found[key] }
	wanted, err := shipyard.EvaluationOf(o.of.Properties)
	if err != nil || o.checks != nil || o.task.Name == shipyard.TaskTest {
		return nil // the decision says what is wrong
	}
	for _, c := range wanted.StepChecks() {
		key, err := check.KeyOf(c.Check, o.key.Namespace, o.shared)
		if err != nil {
			continue
		}
		one := &shipper.Check{}
		switch err := t.client.Get(ctx, key, one); {
		case err == nil:
			found[key] = one
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("reading Check %s: %w", key, err)
		}
	}
	return nil
}

// application reads an Application; nil if there is none.
func (t *Tasks) application(ctx context.Context, from client.Reader, key types.NamespacedName) (*shipper.Application, error) {
	app := &shipper.Application{}
	err := from.Get(ctx, key, app)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading application %s: %w", key, err)
	}
	return app, nil
}
