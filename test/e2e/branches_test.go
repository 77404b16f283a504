// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const branches = `
stages:
- {name: dev, sequences: [{name: delivery, tasks: [{name: deployment}]}]}
- name: eu
  namespace: IN-eu
  sequences:
  - {name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: approval}, {name: deployment}]}
- name: us
  namespace: IN-us
  sequences:
  - {name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: approval}, {name: deployment}]}
- name: world
  namespace: IN-world
  requires: [{stage: eu}, {stage: us}]
  sequences:
  - name: delivery
    triggeredOn: [{event: eu.delivery.finished}, {event: us.delivery.finished}]
    tasks: [{name: deployment}]
`

// TestWhatSeveralStagesLeadToRunsOnce is scenarios 23 and 24: two stages go on side by side. While one has failed, the stage after both
// waits and says for what; when a retry of it has passed, it runs once.
func TestWhatSeveralStagesLeadToRunsOnce(t *testing.T) {
	p := onOneCluster(t, "dev", "eu", "us", "world")
	p.shipyard(branches)
	p.starts("one", "0.0.2")
	eu, us := p.follows("one", "eu", "delivery"), p.follows("one", "us", "delivery")
	p.becomes(eu, "Running approval:Waiting")
	p.becomes(us, "Running approval:Waiting")
	p.Must("approving eu", p.approves(p.ann, eu))
	p.becomes(eu, "Passed approval:Finished/pass deployment:Finished/pass")
	p.Must("rejecting us", p.rejects(us))
	p.ends(us, "Failed")
	p.Eventually("what the stage after both waits for", "version 0.0.2 has not passed in stage us; no version has", func() (string, error) {
		run, err := p.run(eu)
		return triggeredFrom(run), err
	})

	p.Must("retrying us", p.dev.Create(p.Ctx, &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "again"},
		Spec:       shipper.SequenceRunSpec{Shipyard: "shop", RetryOf: &shipper.RetryOf{Run: us, From: "approval"}},
	}))
	p.becomes("again", "Running approval:Waiting")
	p.Must("approving the retry", p.approves(p.ann, "again"))
	p.becomes("again", "Passed approval:Finished/pass deployment:Finished/pass")
	p.becomes(p.follows(eu, "world", "delivery"), "Passed deployment:Finished/pass")
	p.Eventually("what the retry says", "run "+eu+" of the delivery creates it", func() (string, error) {
		run, err := p.run("again")
		return triggeredFrom(run), err
	})
	var all shipper.SequenceRunList
	p.Must("listing runs", p.User.List(p.Ctx, &all, client.InNamespace(p.Namespace)))
	var stages []string
	for i := range all.Items {
		stages = append(stages, all.Items[i].Spec.Stage)
	}
	slices.Sort(stages)
	if got := strings.Join(stages, " "); got != "dev eu us us world" {
		p.Errorf("runs of stages: %s", got)
	}
}

// triggeredFrom is what is said of the runs that follow from one.
func triggeredFrom(run *shipper.SequenceRun) string {
	var out []string
	for _, t := range run.Status.Triggered {
		out = append(out, t.Message)
	}
	return strings.Join(out, ", ")
}

// rejects creates an Approval of ann that rejects.
func (p *pipeline) rejects(name string) error {
	return p.ann.Create(p.Ctx, &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "no-"},
		Spec:       shipper.ApprovalSpec{Run: name, Decision: shipper.DecisionReject},
	})
}

// TestApprovalsAreOfOneAttemptAndExpire is of scenarios 12 and 13: no user approves in time, and an Approval of an older attempt lets no
// retry go on.
func TestApprovalsAreOfOneAttemptAndExpire(t *testing.T) {
	p := beginRuns(t, `
stages:
- name: qa
  sequences:
  - {name: sign, tasks: [{name: approval, properties: {approvals: 2}}]}
  - {name: short, tasks: [{name: approval, properties: {expires: 2s}}]}
`)
	p.waits("late", "short", "web")
	p.becomes("late", "Failed approval:Finished/fail(expired after 2s with 0 of 1 approvals)")
	p.refused("approving what expired", p.approves(p.ann, "late"), "it has finished")

	p.waits("first", "sign", "web")
	p.becomes("first", "Running approval:Waiting")
	p.Must("approving", p.approves(p.ann, "first"))
	p.Eventually("approvals", "1 of 2 approvals", func() (string, error) {
		run, err := p.run("first")
		return run.Status.Tasks[0].Message, err
	})
	p.sets("first", `{"abort":"a mistake"}`)
	p.ends("first", "Aborted")
	p.Must("retrying", p.dev.Create(p.Ctx, &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "again"},
		Spec:       shipper.SequenceRunSpec{Shipyard: "shop", RetryOf: &shipper.RetryOf{Run: "first"}},
	}))
	p.becomes("again", "Running approval:Waiting")
	p.Must("approving the retry", p.approves(p.ann, "again")) // the Approval of the older attempt is none of it
	p.Eventually("approvals of the retry", "1 of 2 approvals", func() (string, error) {
		run, err := p.run("again")
		return fmt.Sprint(run.Status.Tasks[0].Message), err
	})
	p.Eventually("the status of both Approvals", "again True, first True", func() (string, error) {
		var all shipper.ApprovalList
		err := p.ann.List(p.Ctx, &all, client.InNamespace(p.Namespace))
		var out []string
		for i := range all.Items {
			if c := shipper.FindCondition(all.Items[i].Status.Conditions, shipper.ApprovalCounted); c != nil {
				out = append(out, fmt.Sprintf("%s %s", all.Items[i].Spec.Run, c.Status))
			}
		}
		slices.Sort(out)
		return strings.Join(out, ", "), err
	})
	p.becomes("again", "Running approval:Waiting")
}
