// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// beginRuns makes users and a Shipyard whose runs only wait for approvals: they need no Application and no cluster.
func beginRuns(t *testing.T, text string) *pipeline {
	t.Parallel()
	p := &pipeline{fixture: begin(t, nil, nil)}
	p.ann, p.dev = p.user("ann", "shipper:approver"), p.user("dev", "shipper:promoter")
	p.shipyard(text)
	return p
}

// waits starts a run without a version.
func (p *pipeline) waits(name, sequence, service string) {
	p.Helper()
	p.starts(name, "", func(run *shipper.SequenceRun) {
		run.Spec.Sequence, run.Spec.Service, run.Spec.Data = sequence, service, nil
	})
}

// sets patches the spec of a run as dev.
func (p *pipeline) sets(name, spec string) {
	p.Helper()
	run := &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	p.Must("setting "+spec, p.dev.Patch(p.Ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
}

const lines = `
stages:
- name: qa
  sequences:
  - {name: sign, tasks: [{name: approval}]}
  - {name: newest, whenBusy: Supersede, tasks: [{name: approval}]}
  - {name: urgent, whenBusy: Preempt, tasks: [{name: approval}]}
  - {name: next, triggeredOn: [{event: qa.sign.finished}], tasks: [{name: approval, properties: {pass: automatic}}]}
  - {name: other, triggeredOn: [{event: qa.sign.finished}], tasks: [{name: approval, properties: {pass: automatic}}]}
  - {name: refused, triggeredOn: [{event: qa.sign.finished, selector: {match: {result: fail}}}], tasks: [{name: approval}]}
`

// TestRunsStandInLine is scenarios 7, 14, 16, 17 and 23.
func TestRunsStandInLine(t *testing.T) {
	p := beginRuns(t, lines)
	p.waits("a", "sign", "web")
	p.becomes("a", "Running approval:Waiting")
	p.waits("b", "sign", "web")
	p.becomes("b", "Queued")
	p.says("Queued at 1", "shipyard", "list", "-n", p.Namespace)
	p.waits("c", "sign", "api")
	p.becomes("c", "Running approval:Waiting")

	p.sets("a", `{"hold":"DNS"}`)
	p.becomes("a", "Paused approval:Waiting")
	p.becomes("b", "Queued")
	p.Must("approving a held run", p.approves(p.ann, "a"))
	p.becomes("a", "Paused approval:Finished/pass") // the task under way ends, and nothing else begins
	p.sets("a", `{"hold":null}`)
	p.becomes("a", "Passed approval:Finished/pass")

	next, other := p.follows("a", "qa", "next"), p.follows("a", "qa", "other")
	p.becomes("b", "Running approval:Waiting")
	p.becomes(next, "Queued")
	p.Must("approving b", p.approves(p.ann, "b"))
	p.becomes(next, "Passed approval:Finished/pass")
	p.becomes(other, "Passed approval:Finished/pass")

	p.waits("d", "newest", "web")
	p.becomes("d", "Running approval:Waiting")
	p.waits("e", "newest", "web")
	p.becomes("e", "Queued")
	p.waits("f", "newest", "web")
	p.becomes("e", "Superseded")
	p.becomes("f", "Queued")
	p.waits("g", "urgent", "web")
	p.becomes("d", "Preempted approval:Finished/fail(0 of 1 approvals)")
	p.becomes("g", "Running approval:Waiting")
	p.sets("g", `{"abort":"a mistake"}`)
	p.becomes("g", "Aborted approval:Finished/fail(0 of 1 approvals)")
	p.becomes("f", "Running approval:Waiting")
}

// TestRefusalsAndRetries is scenarios 12 and 13: a refusal fails the run, a retry carries what was done, and an Approval is of one attempt.
func TestRefusalsAndRetries(t *testing.T) {
	p := beginRuns(t, strings.Replace(lines, "{name: sign, tasks: [", "{name: sign, tasks: [{name: evaluation}, ", 1))
	p.lendsRunner(p.Namespace) // an evaluation is about an Application
	p.waits("a", "sign", "web")
	p.becomes("a", "Running evaluation:Finished/pass approval:Waiting")
	p.Must("refusing", p.ann.Create(p.Ctx, &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "no"},
		Spec:       shipper.ApprovalSpec{Run: "a", Decision: shipper.DecisionReject},
	}))
	p.becomes("a", "Failed evaluation:Finished/pass approval:Finished/fail(ann rejected it)")
	p.refused("approving a finished run", p.approves(p.ann, "a"), "it has finished")
	after := p.follows("a", "qa", "refused")
	p.becomes(after, "Running approval:Waiting")
	p.sets(after, `{"abort":"seen"}`)

	p.Must("retrying", p.dev.Create(p.Ctx, &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "again"},
		Spec:       shipper.SequenceRunSpec{Shipyard: "shop", RetryOf: &shipper.RetryOf{Run: "a", From: "approval"}},
	}))
	p.becomes("again", "Running evaluation:Carried/pass approval:Waiting")
	p.Must("approving the retry", p.approves(p.ann, "again"))
	p.becomes("again", "Passed evaluation:Carried/pass approval:Finished/pass")
}

// TestARunnerThatIsNotBoundWritesNothing is scenario 30: the binding goes while the run is under way.
func TestARunnerThatIsNotBoundWritesNothing(t *testing.T) {
	t.Parallel()
	p := beginPipeline(t)
	p.shipyard(strings.Replace(deliveries, "{name: deployment}, {name: test}", "{name: approval}, {name: deployment}, {name: test}", 1))
	p.starts("one", "0.0.2")
	p.becomes("one", "Running approval:Waiting")
	p.Must("taking the binding away", world.Management.Delete(p.Ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: "shipper-runner-impersonator-" + shipper.ManagementServiceAccount,
	}}))
	p.Must("approving", p.approves(p.ann, "one"))
	p.Eventually("why it failed", fmt.Sprintf("ServiceAccount shipper-runner is not bound to Shipper: %s",
		shipper.BindCommand("shipper-runner-impersonator", p.Namespace)), func() (string, error) {
		run, err := p.run("one")
		if len(run.Status.Tasks) < 2 {
			return toldRun(run), err
		}
		return run.Status.Tasks[1].Message, err
	})
	p.Release(0) // and no other
	account := &corev1.ServiceAccount{}
	p.Must("the account is there", world.Management.Get(p.Ctx, p.Key(shipper.DefaultRunner), account))
}
