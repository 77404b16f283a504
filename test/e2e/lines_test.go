// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fanOut has one Application, of stage qa. A delivery of the version that serves passes at once.
const fanOut = `
stages:
- name: qa
  sequences:
  - name: delivery
    tasks:
    - {name: deployment, properties: {deploymentstrategy: user_managed}}
    - {name: deployment, properties: {to: first}}
    - {name: release}
  - {name: sign, tasks: [{name: approval}]}
  - name: rollback
    triggeredOn: [{event: qa.delivery.finished, selector: {match: {result: fail}}}]
    tasks: [{name: rollback}]
- name: smoke
  sequences:
  - {name: check, triggeredOn: [{event: qa.delivery.finished}], tasks: [{name: approval, properties: {pass: automatic}}]}
- name: load
  sequences:
  - {name: check, triggeredOn: [{event: qa.delivery.finished}], tasks: [{name: load-test}]}
- name: production
  requires: [{stage: smoke, sequence: check}, {stage: load, sequence: check}]
  sequences:
  - name: delivery
    triggeredOn: [{event: smoke.check.finished}, {event: load.check.finished}]
    tasks: [{name: deployment}]
`

// TestFailedAndAbortedRunsStartNothing is scenarios 6, 15, 24 and 34, in one Shipyard with one Application.
func TestFailedAndAbortedRunsStartNothing(t *testing.T) {
	t.Parallel()
	p := &pipeline{fixture: begin(t, []string{west}, []string{westRegion})}
	p.App = "web-qa"
	app := world.Application(p.Namespace, p.App, "0.0.1", 2, vanguard[1:], p.regions...)
	app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
	p.applies(app)
	p.lendsRunner(p.Namespace)
	p.ann, p.dev = p.user("ann", "shipper:approver"), p.user("dev", "shipper:promoter")
	p.shipyard(fanOut)
	serving := p.Release(0)
	p.Completes(serving)

	p.starts("one", "0.0.1")
	run := p.becomes("one", "Passed deployment:Finished/pass deployment#2:Finished/pass release:Finished/pass")
	p.reportsApart(run, serving)
	p.oneOfTwoFails("one")

	aborted := p.abortsWhileDeploying("two")
	p.says("release "+aborted.Name+" is resumed", "rollout", "resume", p.App) // without a run, nothing raises its step
	p.rollbackGoesFirst()
	p.Release(0) // and no other
	p.Completes(serving)

	runs := &shipper.SequenceRunList{}
	p.Must("listing runs", world.Management.List(p.Ctx, runs, client.InNamespace(p.Namespace)))
	var seen []string
	for i := range runs.Items {
		seen = append(seen, runs.Items[i].Spec.Stage+"."+runs.Items[i].Spec.Sequence)
	}
	slices.Sort(seen)
	want := "load.check qa.delivery qa.delivery qa.rollback qa.sign qa.sign qa.sign smoke.check"
	if diff := cmp.Diff(want, strings.Join(seen, " ")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// reportsApart checks that the second deployment of a run has its own properties and its own report only, and that those of the first are
// kept.
func (p *pipeline) reportsApart(run *shipper.SequenceRun, release string) {
	p.Helper()
	second, _ := run.Status.Data["deployment"].(map[string]any)
	if second["release"] != release || second["to"] != "first" || second["deploymentstrategy"] != nil {
		p.Errorf("the second deployment has %v", second)
	}
	first := maps.Clone(second) // it delivered the same
	delete(first, "to")
	first["deploymentstrategy"] = "user_managed"
	want := map[string]any{"deployment": []any{map[string]any{"version": "0.0.1"}, first}}
	if diff := cmp.Diff(want, run.Status.Data["earlier"]); diff != "" {
		p.Errorf("what was before (-want +got):\n%s", diff)
	}
}

// oneOfTwoFails checks that production, which requires two stages, waits for the one that failed.
func (p *pipeline) oneOfTwoFails(run string) {
	p.Helper()
	passed, failed := p.follows(run, "smoke", "check"), p.follows(run, "load", "check")
	p.ends(failed, "Failed")
	p.becomes(passed, "Passed approval:Finished/pass")
	const why = "version 0.0.1 has not passed in stage load; no version has"
	p.Eventually("what follows from "+passed, "production.delivery, created never: "+why, func() (string, error) {
		run, err := p.run(passed)
		if len(run.Status.Triggered) != 1 {
			return fmt.Sprintf("%+v", run.Status.Triggered), err
		}
		next := run.Status.Triggered[0]
		created := "never"
		if next.CreateTime != nil {
			created = next.CreateTime.String()
		}
		return fmt.Sprintf("%s.%s, created %s: %s", next.Stage, next.Sequence, created, next.Message), err
	})
	p.says("sequence delivery of stage production: Pending: "+why, "shipyard", "status", passed)
}

// abortsWhileDeploying aborts a run whose Release does not achieve its first step, and returns the Release.
func (p *pipeline) abortsWhileDeploying(name string) *shipper.Release {
	p.Helper()
	p.starts(name, "0.0.2", func(run *shipper.SequenceRun) {
		run.Spec.Data["configurationChange"] = map[string]any{"values": map[string]any{"image": map[string]any{"tag": "broken"}}}
	})
	release := p.Release(1)
	p.Eventually("the Release of "+name, p.Namespace+"/"+release, func() (string, error) {
		run, err := p.run(name)
		if len(run.Status.Tasks) == 0 {
			return toldRun(run), err
		}
		return run.Status.Tasks[0].Release, err
	})
	before, err := p.Get(release)
	p.Must("reading the Release", err)
	p.sets(name, `{"abort":"a mistake"}`)
	run := p.ends(name, "Aborted")
	if s := run.Status; s.Result != shipper.ResultFail || s.Completion != shipper.CompletionAborted || s.Message != "a mistake" ||
		len(s.Triggered) > 0 || s.Tasks[0].Completion != shipper.CompletionAborted || len(s.Tasks) != 1 {
		p.Errorf("the aborted run: %+v", s)
	}
	after, err := p.Get(release)
	p.Must("reading the Release", err)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || before.Spec.Hold == "" {
		p.Errorf("the Release, held by %q (-before +after):\n%s", before.Spec.Hold, diff)
	}
	return after
}

// rollbackGoesFirst checks that a run of rollback, started last, goes before those that wait in line.
func (p *pipeline) rollbackGoesFirst() {
	p.Helper()
	p.waits("a", "sign", "web")
	p.becomes("a", "Running approval:Waiting")
	p.waits("b", "sign", "web")
	p.waits("c", "sign", "web")
	p.waits("back", "rollback", "web")
	p.Eventually("the line", "back behind a, b behind back, c behind b", func() (string, error) {
		var seen []string
		for _, name := range []string{"back", "b", "c"} {
			run, err := p.run(name)
			if err != nil {
				return "", err
			}
			seen = append(seen, name+" behind "+run.Status.Behind)
		}
		return strings.Join(seen, ", "), nil
	})
	p.Must("approving a", p.approves(p.ann, "a"))
	p.becomes("back", "Passed rollback:Finished/pass")
	p.becomes("b", "Running approval:Waiting")
	p.becomes("c", "Queued")
}
