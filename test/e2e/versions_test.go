// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// inOneNamespace makes the Applications of stages of one cluster, whose first Releases serve at once, and lends the runner there.
func inOneNamespace(t *testing.T, stages ...string) *pipeline {
	t.Parallel()
	p := &pipeline{fixture: begin(t, []string{west}, []string{westRegion})}
	for _, stage := range stages {
		app := world.Application(p.Namespace, "web-"+stage, "0.0.1", 1, vanguard[1:], p.regions...)
		app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
		p.applies(app)
	}
	p.App = "web-" + stages[0]
	p.lendsRunner(p.Namespace)
	p.ann, p.dev = p.user("ann", "shipper:approver"), p.user("dev", "shipper:promoter")
	p.Completes(p.Release(0))
	return p
}

// TestTheExampleOfTheSpecificationIsRun is scenario 1: the example as the specification has it, with its two names for tests.
func TestTheExampleOfTheSpecificationIsRun(t *testing.T) {
	p := inOneNamespace(t, "hardening")
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
- {name: production, requires: [{stage: staging}], sequences: [{name: delivery, tasks: [{name: deployment}]}]}
- {name: later, requires: [{stage: staging, soak: 1h}], sequences: [{name: delivery, tasks: [{name: deployment}]}]}
`

// TestOnlyVersionsThatPassedAreDelivered is scenarios 9 and 25: versions that have not passed, or not soaked, are refused and may be
// overridden; a block is overridden on the Application while the run waits.
func TestOnlyVersionsThatPassedAreDelivered(t *testing.T) {
	p := inOneNamespace(t, "staging", "production", "later")
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

	block := p.blocks()
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
	app.Namespace, app.Name = p.Namespace, "web-production"
	override := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, shipper.RolloutBlockOverrideAnnotation, block)
	p.Must("overriding the block", p.User.Patch(p.Ctx, app, client.RawPatch(types.MergePatchType, override)))
	p.becomes("fix", "Passed deployment:Finished/pass")
	p.says("overrode what stage production requires: a fix", "audit", "--kind", "override")
	p.lifts(block)
}
