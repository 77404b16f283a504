// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// hooksKey is the data key of anchors that holds the runs as JSON. It is absent until a hook runs.
const hooksKey = "Hooks"

// What a Release is to a cluster, which decides about the hooks that are run.
const (
	firstInstall = "install"
	upgrade      = "upgrade"
	rollback     = "rollback"
)

// moment is before or after the objects are written.
type moment string

const (
	pre  moment = "pre-"
	post moment = "post-"
)

// hookRecord is what an anchor remembers of hooks. It is written before an object is made, and again when its end was seen: a
// pass goes on where the last one was killed.
type hookRecord struct {
	// Mode is what the Release is to the cluster. Decided once.
	Mode string `json:"mode,omitempty"`
	// Installed is set when the target was installed for the first time, hooks and all.
	Installed bool              `json:"installed,omitempty"`
	Runs      []shipper.HookRun `json:"runs,omitempty"`
	// Test is the last run of tests that a user asked for, and Checks are those that Checks asked for.
	Test   *shipper.TestRun  `json:"test,omitempty"`
	Checks []shipper.TestRun `json:"checks,omitempty"`
}

// hookOrders are what a Release asks of its hooks.
type hookOrders struct {
	// unknown is set when there is no Release, or it is not known yet.
	unknown bool
	// goal is the Release that this one goes back to; empty if it does not.
	goal string
	// retry and test are the values of its annotations.
	retry, test string
	// blocked is set while RolloutBlocks stop the Release: then it gets no run that a user asks for.
	blocked bool
	// checks are the tests that Checks ask for.
	checks []testOrder
}

// testOrder is one run of tests.
type testOrder struct {
	request string
	// names of the tests; none means all.
	names []string
	// needed is true if it is a failure that the chart has no such tests.
	needed bool
}

// checkOrders are the tests that the Checks of a Release's step ask for.
func (w *Worker) checkOrders(ctx context.Context, rel *shipper.Release) ([]testOrder, error) {
	if !rel.Spec.Environment.Strategy.HasChecks() {
		return nil, nil
	}
	target := &shipper.CheckTarget{}
	err := w.client.Get(ctx, client.ObjectKeyFromObject(rel), target, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading CheckTarget %s: %w", rel.Name, err)
	}
	var out []testOrder
	if err != nil || !check.Current(target, rel) {
		return nil, nil
	}
	for i := range target.Spec.Checks {
		if run := &target.Spec.Checks[i]; run.Check.Tests != nil {
			out = append(out, testOrder{check.TestRequest(target, run), run.Check.Tests.Names, true})
		}
	}
	return out, nil
}

// hookOrdersOf reads the target's Release.
func (w *Worker) hookOrdersOf(ctx context.Context, it *shipper.InstallationTarget) (hookOrders, error) {
	var rel shipper.Release
	err := w.client.Get(ctx, client.ObjectKeyFromObject(it), &rel)
	if apierrors.IsNotFound(err) {
		return hookOrders{unknown: true}, nil
	}
	if err != nil {
		return hookOrders{}, fmt.Errorf("reading Release %s: %w", it.Name, err)
	}
	checks, err := w.checkOrders(ctx, &rel)
	if err != nil {
		return hookOrders{}, err
	}
	return hookOrders{
		checks: checks,
		goal:   rel.Annotations[shipper.ReleaseRollbackOfAnnotation],
		retry:  rel.Annotations[shipper.ReleaseHooksRetryAnnotation],
		test:   rel.Annotations[shipper.ReleaseTestAnnotation],

		blocked: blocked(&rel),
	}, nil
}

// orders is an error while the Release of the target, which says whether it goes back, is not known yet.
func (i *installer) orders() error {
	if i.hookOrders.unknown && len(i.it.OwnerReferences) > 0 {
		return &problem{shipper.InProgress, retry.Retry, "waiting for the Release, which says whether it goes back"}
	}
	return nil
}

// hookRecordOf reads the runs from the anchor or, where a user deleted it, from the status: a hook that ran once in a
// cluster for a Release is not run again.
func hookRecordOf(a *anchor, known shipper.ClusterInstallationStatus) *hookRecord {
	if a != nil && a.hooks != "" {
		out := &hookRecord{}
		if json.Unmarshal([]byte(a.hooks), out) == nil {
			return out
		}
	}
	var out *hookRecord
	for _, run := range known.Hooks {
		_, mode, _ := strings.Cut(run.Event, "-")
		if run.Phase != shipper.HookSucceeded || mode == "" {
			continue
		}
		if out == nil {
			out = &hookRecord{}
		}
		if !ofDeletion(release.HookEvent(run.Event)) {
			out.Mode = mode
		}
		out.Runs = append(out.Runs, run)
	}
	return out
}

// text is how an anchor holds it.
func (b *hookRecord) text() string {
	if b == nil {
		return ""
	}
	raw, err := json.Marshal(b)
	if err != nil { // strings and times are always JSON
		return ""
	}
	return string(raw)
}

// find is the last run of a hook at a moment, or nil.
func (b *hookRecord) find(event release.HookEvent, entry item) *shipper.HookRun {
	for _, run := range b.Runs {
		if run.Event == string(event) && run.Kind == entry.Kind && run.Name == entry.Name {
			return &run
		}
	}
	return nil
}

// put replaces the last run of a hook.
func (b *hookRecord) put(run shipper.HookRun) {
	for n, old := range b.Runs {
		if old.Event == run.Event && old.Kind == run.Kind && old.Name == run.Name {
			b.Runs[n] = run
			return
		}
	}
	b.Runs = append(b.Runs, run)
}

// once reports whether what an anchor lists was installed at some time. One without hooks is as good as that.
func (a *anchor) once() bool {
	if a.hooks == "" {
		return true
	}
	book := hookRecordOf(a, shipper.ClusterInstallationStatus{})
	return book == nil || book.Installed
}

// part takes hooks and objects apart.
func part(all []wanted) (objects, hooks []wanted) {
	for _, w := range all {
		if w.hook != nil {
			hooks = append(hooks, w)
		} else {
			objects = append(objects, w)
		}
	}
	return objects, hooks
}

// at are the hooks of an event.
func at(hooks []wanted, event release.HookEvent) []wanted {
	return slices.DeleteFunc(slices.Clone(hooks), func(w wanted) bool { return !w.hook.On(event) })
}

// mode decides what the Release is to the cluster: the first of its Application that is installed there, one that goes back,
// or another. One that has failed before it was installed does not count, since nothing of what its hooks do is done.
func (i *installer) mode(ctx context.Context) (string, error) {
	if i.hookRecord != nil && i.hookRecord.Mode != "" {
		return i.hookRecord.Mode, nil
	}
	if err := i.orders(); err != nil {
		return "", err
	}
	anchors, err := anchorsBut(ctx, i.member.Live(), i.it, client.InNamespace(i.it.Namespace),
		client.MatchingLabels{shipper.AppLabel: i.it.Labels[shipper.AppLabel]})
	if err != nil {
		return "", err
	}
	mode := firstInstall
	for n := range anchors {
		if other := anchorOf(i.member, &anchors[n]); other.claim == nil && !other.deleting && other.once() {
			if mode = upgrade; i.hookOrders.goal != "" {
				mode = rollback
			}
		}
	}
	if i.hookRecord == nil {
		i.hookRecord = &hookRecord{}
	}
	i.hookRecord.Mode = mode
	return mode, nil
}

// runHooks runs the chart's hooks of a moment, one after another. While one runs, the error says that it is waited for. What
// was installed once has had its moments, also when the chart renders to other hooks by now.
func (i *installer) runHooks(ctx context.Context, hooks []wanted, when moment) error {
	if i.was || i.hookRecord != nil && i.hookRecord.Installed {
		return nil
	}
	if !slices.ContainsFunc(hooks, func(w wanted) bool { return slices.ContainsFunc(w.hook.Events, ofInstallation) }) {
		return nil
	}
	mode, err := i.mode(ctx)
	if err != nil {
		return err
	}
	event := release.HookEvent(string(when) + mode)
	return i.runAll(ctx, at(hooks, event), event, func(run *shipper.HookRun) (string, bool) {
		if run == nil {
			return i.hookOrders.retry, true
		}
		return i.hookOrders.retry, run.Phase == shipper.HookHasFailed && i.hookOrders.retry != "" && run.Request != i.hookOrders.retry
	})
}

// test runs the chart's tests when the Release or its Checks ask for it, and notes what came of them. It is no part of the installation.
func (i *installer) test(ctx context.Context) error {
	if i.hookRecord != nil {
		i.tested, i.checked = i.hookRecord.Test, i.hookRecord.Checks
	}
	var errs []error
	if want := i.hookOrders.test; want != "" && !endedFor(i.tested, want) {
		run, err := i.runTests(ctx, testOrder{request: want}, func(run *shipper.TestRun) { i.hookRecord.Test = run })
		i.tested, errs = run, append(errs, err)
		if run.Phase == shipper.HookRunning { // another run would remove its objects
			return errors.Join(errs...)
		}
	}
	checked := []shipper.TestRun{} // and not nil: those of an earlier step leave the status
	for _, order := range i.hookOrders.checks {
		at := slices.IndexFunc(i.checked, func(r shipper.TestRun) bool { return r.Request == order.request })
		if at >= 0 && endedFor(&i.checked[at], order.request) {
			checked = append(checked, i.checked[at])
			continue
		}
		run, err := i.runTests(ctx, order, func(run *shipper.TestRun) { i.hookRecord.Checks = append(slices.Clone(checked), *run) })
		checked, errs = append(checked, *run), append(errs, err)
		if run.Phase == shipper.HookRunning {
			break
		}
	}
	i.checked = checked
	return errors.Join(errs...)
}

// endedFor reports whether the tests have run for a request.
func endedFor(run *shipper.TestRun, request string) bool {
	return run != nil && run.Request == request && run.Phase != shipper.HookRunning
}

// runTests runs tests, or looks how far they are. note keeps, in the record, what came of them in the end.
func (i *installer) runTests(ctx context.Context, order testOrder, note func(*shipper.TestRun)) (*shipper.TestRun, error) {
	out := &shipper.TestRun{Request: order.request, Phase: shipper.HookRunning}
	all, err := i.render()
	if err != nil {
		out.Message = retry.Brief(err)
		return out, err
	}
	if i.hookRecord == nil {
		i.hookRecord = &hookRecord{}
	}
	i.hookRecord.Installed = true
	i.all = all
	_, hooks := part(all)
	tests, missing := testsOf(hooks, order)
	if missing != "" {
		out.Message = missing
		if order.needed {
			out.Phase = shipper.HookHasFailed
			note(out)
			return out, i.record(ctx, i.anchor.inventory, i.anchor.rendered)
		}
	}
	err = i.discreet(i.runAll(ctx, tests, release.HookTest, func(run *shipper.HookRun) (string, bool) {
		return order.request, run == nil || run.Request != order.request
	}))
	if err != nil {
		out.Message = retry.Brief(err)
		if reason, _ := retry.ClassifyInCluster(err); reason != shipper.HookFailed {
			return out, err
		}
		out.Phase = shipper.HookHasFailed
	} else {
		out.Phase = shipper.HookSucceeded
	}
	note(out)
	return out, i.record(ctx, i.anchor.inventory, i.anchor.rendered)
}

// testsOf are the tests that an order names, and says which of them the chart does not have.
func testsOf(hooks []wanted, order testOrder) (tests []wanted, missing string) {
	all := at(hooks, release.HookTest)
	if len(order.names) == 0 {
		if len(all) == 0 {
			missing = "the chart has no tests"
		}
		return all, missing
	}
	var lacking []string
	for _, name := range order.names {
		i := slices.IndexFunc(all, func(w wanted) bool { return w.content.GetName() == name })
		if i < 0 {
			lacking = append(lacking, name)
			continue
		}
		tests = append(tests, all[i])
	}
	if len(lacking) > 0 {
		missing = "the chart has no test named " + strings.Join(lacking, ", ")
	}
	return tests, missing
}
