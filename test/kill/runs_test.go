// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// TestARunIsDoneOnceWhenKilledAfterEveryWrite delivers a version, with a run that follows: scenario 22. There is one Release and one run
// that follows, and each task passes.
func TestARunIsDoneOnceWhenKilledAfterEveryWrite(t *testing.T) {
	if env.IsNightly() {
		t.Run("undisturbed", func(t *testing.T) { delivers(t, spared) })
		if t.Failed() {
			return
		}
	}
	t.Run("the answer lost", func(t *testing.T) { delivers(t, unanswered) })
	if env.IsNightly() {
		t.Run("the answer read", func(t *testing.T) { delivers(t, answered) })
	}
}

func delivers(t *testing.T, how death) {
	s := begin(t)
	s.lends()
	app := s.application(appName, "0.0.1", replicas, allIn)
	s.Must("creating the application", world.Management.Create(s.Ctx, app, client.FieldOwner("kubectl-create")))
	s.Completes(s.Release(0))
	task := func(names ...string) (out []shipper.Task) {
		for _, name := range names {
			out = append(out, shipper.Task{Name: name})
		}
		return out
	}
	s.Must("creating the shipyard", world.Management.Create(s.Ctx, &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "shop"},
		Spec: shipper.ShipyardSpec{Stages: []shipper.Stage{{Name: "qa", Application: "{service}", Sequences: []shipper.Sequence{
			{Name: "delivery", Tasks: task("deployment", "evaluation", "release")},
			{Name: "verify", Tasks: task("evaluation"), TriggeredOn: []shipper.Trigger{{Event: "qa.delivery.finished"}}},
		}}}},
	}))
	s.rests()

	began := time.Now()
	for _, g := range s.guards {
		g.hold(replicas)
	}
	world.gate.count()
	world.gate.decide(how)
	if how != spared {
		s.Patience = perseverance
	}
	s.Must("starting the run", world.Management.Create(s.Ctx, &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "one"},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Sequence: "delivery", Service: appName, Data: shipper.FreeForm{"deployment": map[string]any{"version": "0.0.2"}},
		},
	}))
	const want = "delivery: Passed deployment pass, evaluation pass, release pass\nverify: Passed evaluation pass"
	s.Eventually("the runs", want, s.runs)
	s.Completes(s.Release(1))
	s.rests()
	if got, err := s.runs(); err != nil || got != want {
		s.Errorf("at rest: %s, %v", got, err)
	}
	world.gate.decide(spared)
	s.Patience = env.Patience
	writes, lives := world.gate.count()
	for _, g := range s.guards {
		if offences, _, _ := g.report(); len(offences) > 0 {
			s.Errorf("invariants were broken:\n%s", strings.Join(offences, "\n"))
		}
	}
	s.Logf("%d writes, %d lives, %s", len(writes), lives, time.Since(began).Round(time.Second))
}

// runs are all runs of the namespace, the ones that others triggered last.
func (s *fixture) runs() (string, error) {
	all := &shipper.SequenceRunList{}
	err := world.Management.List(s.Ctx, all, client.InNamespace(s.Namespace))
	var lines []string
	for i := range all.Items {
		run := &all.Items[i]
		line := run.Spec.Sequence + ":"
		if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil {
			line += " " + c.Reason
		}
		var tasks []string
		for i := range run.Status.Tasks {
			tasks = append(tasks, fmt.Sprintf("%s %s", shipyard.NameOf(&run.Status.Tasks[i]), run.Status.Tasks[i].Result))
		}
		lines = append(lines, line+" "+strings.Join(tasks, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

// lends makes the ServiceAccount that runs write as.
func (s *fixture) lends() {
	s.Helper()
	s.Must("creating the runner", world.Management.Create(s.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: shipper.DefaultRunner,
	}}))
	for role, account := range map[string]rbacv1.Subject{
		"shipper-runner-impersonator": {Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount},
		"shipper:runner":              {Namespace: s.Namespace, Name: shipper.DefaultRunner},
	} {
		account.Kind = rbacv1.ServiceAccountKind
		s.Must("binding "+role, world.Management.Create(s.Ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{account},
		}))
	}
}
