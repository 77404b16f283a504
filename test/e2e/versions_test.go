// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// onOneCluster makes the Applications of stages of one cluster, whose first Releases serve at once, and lends the runner. The first is in
// the namespace of the Shipyard, and each other in one of its own, as the chart has one Service.
func onOneCluster(t *testing.T, first string, others ...string) *pipeline {
	t.Parallel()
	p := &pipeline{fixture: begin(t, []string{west}, []string{westRegion}), others: map[string]*fixture{}}
	p.App = "web-" + first
	all, namespaces := []*fixture{p.fixture}, []string{p.Namespace}
	for _, stage := range others {
		other := begin(t, []string{west}, []string{westRegion})
		other.App = "web"
		p.others[stage] = other
		all, namespaces = append(all, other), append(namespaces, other.Namespace)
	}
	for _, s := range all {
		app := s.application("0.0.1", 1, vanguard[1:])
		app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
		s.applies(app)
	}
	p.lendsRunner(namespaces...)
	p.ann, p.dev = p.user("ann", "shipper:approver"), p.user("dev", "shipper:promoter")
	for _, s := range all {
		s.Completes(s.Release(0))
	}
	return p
}

// TestTheExampleOfTheSpecificationIsRun is scenario 1: the example as the specification has it, with its two names for tests.
func TestTheExampleOfTheSpecificationIsRun(t *testing.T) {
	p := onOneCluster(t, "hardening")
	text, err := os.ReadFile(filepath.Join("..", "..", "apis", "rules", "shipyard", "file", "testdata", "0.2.golden.yaml"))
	p.Must("reading the example", err)
	p.shipyard(string(text))
	p.starts("one", "0.0.2", func(run *shipper.SequenceRun) { run.Spec.Sequence = "artifact-delivery" })
	p.becomes("one", "Passed deployment:Finished/pass test:Finished/pass evaluation:Finished/pass test#2:Finished/pass "+
		"evaluation#2:Finished/pass release:Finished/pass")
	p.Completes(p.Release(1))
}

const requiring = `
stages:
- {name: staging, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
- {name: production, namespace: IN-production, requires: [{stage: staging}], sequences: [{name: delivery, tasks: [{name: deployment}]}]}
- {name: later, namespace: IN-later, requires: [{stage: staging, soak: 1h}], sequences: [{name: delivery, tasks: [{name: deployment}]}]}
`

// TestOnlyVersionsThatPassedAreDelivered is scenarios 9 and 25: versions that have not passed, or not soaked, are refused and may be
// overridden; a block is overridden on the Application while the run waits.
func TestOnlyVersionsThatPassedAreDelivered(t *testing.T) {
	p := onOneCluster(t, "staging", "production", "later")
	p.shipyard(requiring)
	p.starts("old", "0.0.1")
	p.becomes("old", "Passed deployment:Finished/pass")
	of := func(name, stage, version string, edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
		run := &shipper.SequenceRun{Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: stage, Service: "web", Data: shipper.FreeForm{"deployment": map[string]any{"version": version}},
		}}
		run.Namespace, run.Name = p.Namespace, name
		for _, edit := range edits {
			edit(run)
		}
		return run
	}
	skips := func(run *shipper.SequenceRun) { run.Spec.SkipRequires = &shipper.SkipRequires{Reason: "a fix"} }
	p.refused("a version that has not passed", p.dev.Create(p.Ctx, of("no", "production", "0.0.2")),
		"version 0.0.2 has not passed in stage staging; 0.0.1 has", "spec.skipRequires")
	p.refused("a version that has not soaked", p.dev.Create(p.Ctx, of("no", "later", "0.0.1")), "has to soak for 1h: until 2")
	p.refused("skipping it without the right", p.dev.Create(p.Ctx, of("no", "production", "0.0.2", skips)), "the verb override")
	p.Must("a version that has passed", p.dev.Create(p.Ctx, of("same", "production", "0.0.1")))
	p.becomes("same", "Passed deployment:Finished/pass")

	production := p.others["production"]
	block := production.blocks()
	p.Must("skipping it with the right", p.User.Create(p.Ctx, of("fix", "production", "0.0.2", skips)))
	p.Eventually("what holds the run", "rollouts blocked by: "+block, func() (string, error) {
		run, err := p.run("fix")
		c := shipper.FindCondition(run.Status.Conditions, shipper.RunBlocked)
		if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "rollouts blocked by: "+block) {
			return toldRun(run), err
		}
		return "rollouts blocked by: " + block, err
	})
	app := &shipper.Application{}
	app.Namespace, app.Name = production.Namespace, production.App
	override := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, shipper.RolloutBlockOverrideAnnotation, block)
	p.Must("overriding the block", p.User.Patch(p.Ctx, app, client.RawPatch(types.MergePatchType, override)))
	p.becomes("fix", "Passed deployment:Finished/pass")
	p.says("overrode what stage production requires: a fix", "audit", "--kind", "override")
	production.lifts(block)
}

const evaluated = `
stages:
- name: qa
  sequences:
  - name: delivery
    tasks:
    - {name: deployment}
    - {name: evaluation, timeout: 2m, properties: {checks: [{check: errors, key: true}]}}
    - {name: release}
  - name: rollback
    triggeredOn: [{event: qa.delivery.finished, selector: {match: {evaluation.result: fail}}}]
    tasks: [{name: rollback}]
`

// TestAFailedEvaluationIsTakenBack is scenario 4: half of the requests of the contender fail, the Check that has to pass does not, and the
// run of rollback aborts the Release before it is released.
func TestAFailedEvaluationIsTakenBack(t *testing.T) {
	p := onOneCluster(t, "qa")
	p.metrics()
	p.checks("errors", errorsCheck(2))
	p.shipyard(evaluated)
	serving := p.Release(0)
	p.starts("one", "0.0.2")
	contender := p.Release(1)
	p.serves(west, contender, 0.5)
	run := p.ends("one", "Failed")
	if diff := cmp.Diff("Failed deployment:Finished/pass evaluation:Finished/fail release:Skipped", withoutMessages(run)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.becomes(p.follows("one", "qa", "rollback"), "Passed rollback:Finished/pass")
	p.Release(0) // and no other
	p.Completes(serving)
	p.readyPods(serving, 1)
}

// withoutMessages is the state of a run and its tasks in one line.
func withoutMessages(run *shipper.SequenceRun) string {
	run = run.DeepCopy()
	for i := range run.Status.Tasks {
		run.Status.Tasks[i].Message = ""
	}
	return strings.ReplaceAll(toldRun(run), "()", "")
}
