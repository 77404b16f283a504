// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// pipeline is a Shipyard of two stages: staging in the namespace of the Shipyard and in one cluster, production in another one and in two.
type pipeline struct {
	*fixture

	production *fixture
	// others are the namespaces of stages by their names, in place of production.
	others map[string]*fixture
	// ann and bob may approve, and dev starts runs.
	ann, bob, dev client.Client
}

// beginPipeline makes both Applications, with version 0.0.1, and lends the runner in both namespaces.
func beginPipeline(t *testing.T) *pipeline {
	p := &pipeline{fixture: begin(t, []string{west}, []string{westRegion}), production: begin(t, []string{west, east},
		[]string{westRegion, eastRegion})}
	p.App, p.production.App = "web-staging", "web"
	for _, s := range []*fixture{p.fixture, p.production} {
		app := world.Application(s.Namespace, s.App, "0.0.1", 2, vanguard[1:], s.regions...)
		app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
		s.applies(app)
	}
	p.lendsRunner(p.Namespace, p.production.Namespace)
	p.ann, p.bob, p.dev = p.user("ann", "shipper:approver"), p.user("bob", "shipper:approver"), p.user("dev", "shipper:promoter")
	for _, s := range []*fixture{p.fixture, p.production} {
		s.Completes(s.Release(0))
	}
	return p
}

// lendsRunner makes the ServiceAccount of runs, lends it to Shipper, and binds its rights in namespaces.
func (p *pipeline) lendsRunner(namespaces ...string) {
	p.Helper()
	p.lends("shipper-runner-impersonator", p.Namespace, rbacv1.Subject{
		Kind: "ServiceAccount", Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
	})
	p.Must("creating the runner", world.Management.Create(p.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: shipper.DefaultRunner,
	}}))
	for _, namespace := range namespaces {
		p.lends("shipper:runner", namespace, rbacv1.Subject{Kind: "ServiceAccount", Namespace: p.Namespace, Name: shipper.DefaultRunner})
	}
}

// lends binds a ClusterRole in a namespace.
func (p *pipeline) lends(role, namespace string, to rbacv1.Subject) {
	p.Helper()
	p.Must("binding "+role, world.Management.Create(p.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll(role, ":", "-") + "-" + strings.ToLower(to.Name)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{to},
	}))
}

// user is the client of a user with a role in the namespace of the Shipyard.
func (p *pipeline) user(name, role string) client.Client {
	p.Helper()
	p.lends(role, p.Namespace, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: name})
	c, err := client.New(env.As(world.Fleet.Management.Config, name), client.Options{Scheme: world.Management.Scheme()})
	p.Must("connecting as "+name, err)
	return c
}

// shipyard creates one; PRODUCTION is replaced by the namespace of production, and IN-STAGE by those of others.
func (p *pipeline) shipyard(text string) {
	p.Helper()
	if p.production != nil {
		text = strings.ReplaceAll(text, "PRODUCTION", p.production.Namespace)
	}
	for stage, s := range p.others {
		text = strings.ReplaceAll(text, "IN-"+stage, s.Namespace)
	}
	sy := &shipper.Shipyard{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "shop"}}
	p.Must("reading the shipyard", yaml.UnmarshalStrict([]byte(text), &sy.Spec))
	p.Must("creating the shipyard", world.Management.Create(p.Ctx, sy))
}

// starts a run of staging as dev, and names it.
func (p *pipeline) starts(name, version string, edits ...func(*shipper.SequenceRun)) {
	p.Helper()
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Sequence: "delivery", Service: "web", Data: shipper.FreeForm{"deployment": map[string]any{"version": version}},
		},
	}
	for _, edit := range edits {
		edit(run)
	}
	p.Must("starting run "+name, p.dev.Create(p.Ctx, run))
}

func (p *pipeline) run(name string) (*shipper.SequenceRun, error) {
	run := &shipper.SequenceRun{}
	return run, world.Management.Get(p.Ctx, p.Key(name), run)
}

// becomes waits until a run has a state, with its tasks.
func (p *pipeline) becomes(name, want string) *shipper.SequenceRun {
	p.Helper()
	var run *shipper.SequenceRun
	p.Eventually("run "+name, want, func() (string, error) {
		var err error
		run, err = p.run(name)
		return toldRun(run), err
	})
	return run
}

// ends waits until a run has a state, whatever its tasks are.
func (p *pipeline) ends(name, want string) *shipper.SequenceRun {
	p.Helper()
	var run *shipper.SequenceRun
	p.Eventually("run "+name, want, func() (string, error) {
		var err error
		run, err = p.run(name)
		told := toldRun(run)
		if state, _, _ := strings.Cut(told, " "); state == want {
			return state, err
		}
		return told, err
	})
	return run
}

// toldRun is the state of a run and its tasks in one line, with messages of what failed.
func toldRun(run *shipper.SequenceRun) string {
	state := ""
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil {
		state = c.Reason
	}
	for i := range run.Status.Tasks {
		task := &run.Status.Tasks[i]
		state += fmt.Sprintf(" %s:%s", shipyard.NameOf(task), strings.TrimSuffix(string(task.State)+"/"+string(task.Result), "/"))
		if task.Result == shipper.ResultFail {
			state += "(" + task.Message + ")"
		}
	}
	return state
}

// follows waits until a run has triggered one of a stage and a sequence, and names it.
func (p *pipeline) follows(name, stage, sequence string) string {
	p.Helper()
	next := ""
	p.Eventually("what follows from "+name, "created", func() (string, error) {
		run, err := p.run(name)
		for _, t := range run.Status.Triggered {
			if next = t.Name; t.Stage == stage && t.Sequence == sequence && t.CreateTime != nil {
				return "created", err
			}
		}
		return fmt.Sprintf("%+v", run.Status.Triggered), err
	})
	return next
}

// approves creates an Approval as a user.
func (p *pipeline) approves(as client.Client, name string) error {
	return as.Create(p.Ctx, &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: "a-"}, Spec: shipper.ApprovalSpec{Run: name},
	})
}

const deliveries = `
stages:
- name: staging
  sequences:
  - {name: delivery, tasks: [{name: deployment}, {name: test}, {name: evaluation}, {name: release}]}
- name: production
  namespace: PRODUCTION
  requires: [{stage: staging}]
  sequences:
  - name: delivery
    triggeredOn: [{event: staging.delivery.finished}]
    tasks: [{name: approval, properties: {approvals: 2}}, {name: deployment, timeout: 60s}, {name: release}]
  - name: rollback
    triggeredOn: [{event: production.delivery.finished, selector: {match: {result: fail}}}]
    tasks: [{name: rollback}]
`

// TestADeliveryGoesThroughItsStages is scenarios 2, 3, 8, 10 and 11: one run goes through staging, then production waits for two people, of
// without a request, a block holds it, and it ends on two clusters; an edit of the Shipyard meanwhile does not bear on it.
func TestADeliveryGoesThroughItsStages(t *testing.T) {
	t.Parallel()
	p := beginPipeline(t)
	p.shipyard(deliveries)
	p.starts("one", "0.0.2")
	run := p.becomes("one", "Passed deployment:Finished/pass test:Finished/pass evaluation:Finished/pass release:Finished/pass")
	staged := p.Release(1)
	p.Completes(staged)
	p.readyPods(staged, 2)

	sy := &shipper.Shipyard{}
	p.Must("reading the shipyard", world.Management.Get(p.Ctx, p.Key("shop"), sy))
	before := sy.DeepCopy()
	sy.Spec.Stages[1].Sequences[0].Tasks = sy.Spec.Stages[1].Sequences[0].Tasks[1:]
	p.Must("taking the approval out of the shipyard", world.Management.Patch(p.Ctx, sy, client.MergeFrom(before)))

	next := p.follows("one", "production", "delivery")
	p.becomes(next, "Running approval:Waiting")
	p.refused("approving what one asked for", p.approves(p.user("dev", "shipper:approver"), next), "dev", "another user")
	p.Must("approving as ann", p.approves(p.ann, next))
	p.Eventually("approvals", "1 of 2 approvals", func() (string, error) {
		is, err := p.run(next)
		return is.Status.Tasks[0].Message, err
	})
	p.refused("approving twice", p.approves(p.ann, next), "ann", "already")
	block := p.production.blocks()
	p.Must("approving as bob", p.approves(p.bob, next))
	p.Eventually("what holds it", "rollouts blocked by: "+block, func() (string, error) {
		is, err := p.run(next)
		c := shipper.FindCondition(is.Status.Conditions, shipper.RunBlocked)
		if c == nil || c.Status != corev1.ConditionTrue {
			return toldRun(is), err
		}
		at := strings.Index(c.Message, "rollouts blocked by: "+block)
		if at < 0 {
			return c.Message, err
		}
		return c.Message[at:][:len("rollouts blocked by: "+block)], err
	})
	p.production.lifts(block)
	done := p.becomes(next, "Passed approval:Finished/pass deployment:Finished/pass release:Finished/pass")
	p.production.Completes(p.production.Release(1))
	p.production.readyPods(p.production.Release(1), 2)
	was, is := run.Status.Resolved, done.Status.Resolved
	if is.Context != was.Context || is.Revision != was.Revision {
		p.Errorf("context %s of revision %v, and %s of %v", was.Context, was.Revision, is.Context, is.Revision)
	}
	if done.Spec.RequestedBy.Username != "dev" {
		p.Errorf("it was requested by %q", done.Spec.RequestedBy.Username)
	}
}

// barePod is a test of a chart, as helm create writes it.
const barePod = `apiVersion: v1
kind: Pod
metadata:
  name: "{{ .Release.Name }}-test-connection"
  annotations: {helm.sh/hook: test}
spec:
  restartPolicy: Never
  containers: [{name: wget, image: "busybox:1", args: ["hooked:80"]}]
`

// TestATestOfABarePodEnds is the task test with a chart whose test is no Job.
func TestATestOfABarePodEnds(t *testing.T) {
	t.Parallel()
	files := charts.Hooked(barePod)
	files["Chart.yaml"] = "apiVersion: v2\nname: tested\nversion: 0.0.1\n"
	archive, err := charts.PackFiles("tested", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	world.Charts.Publish(archive)
	p := &pipeline{fixture: begin(t, []string{west, east}, []string{westRegion, eastRegion})}
	p.App = "web-staging"
	app := p.application("0.0.1", 1, allIn)
	app.Spec.Template.Chart.Name = "tested"
	p.applies(app)
	p.lendsRunner(p.Namespace)
	p.dev = p.user("dev", "shipper:promoter")
	p.Completes(p.Release(0))
	p.shipyard("stages: [{name: staging, sequences: [{name: delivery, tasks: [{name: deployment}, {name: test}]}]}]")
	p.starts("one", "0.0.1")
	p.becomes("one", "Passed deployment:Finished/pass test:Finished/pass")
}

// TestAFailedDeliveryIsTakenBack is scenarios 4 and 5: a broken image times out, and the run of rollback aborts the Release.
func TestAFailedDeliveryIsTakenBack(t *testing.T) {
	t.Parallel()
	p := beginPipeline(t)
	p.shipyard(strings.Replace(strings.Replace(deliveries, "{name: approval, properties: {approvals: 2}}, ", "", 1),
		"{name: deployment}, {name: test}, {name: evaluation}, {name: release}", "{name: evaluation}, {name: deployment}", 1))
	p.starts("one", "0.0.2")
	p.becomes("one", "Passed evaluation:Finished/pass deployment:Finished/pass")
	next := p.follows("one", "production", "delivery")
	p.becomes(next, "Passed deployment:Finished/pass release:Finished/pass")
	serving := p.production.Release(1)
	p.production.Completes(serving)

	broken := func(run *shipper.SequenceRun) {
		run.Spec.Stage, run.Spec.SkipRequires = "production", nil
		run.Spec.Data["configurationChange"] = map[string]any{"values": map[string]any{"image": map[string]any{"tag": "broken"}}}
	}
	p.starts("two", "0.0.2", broken)
	p.ends("two", "Failed")
	back := p.follows("two", "production", "rollback")
	p.becomes(back, "Passed rollback:Finished/pass")
	p.production.readyPods(serving, 2)
	p.Eventually("Releases of production", fmt.Sprint([]string{serving}), func() (string, error) {
		history, err := p.production.History("web")
		return fmt.Sprint(history[len(history)-1:]), err
	})
}
