// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// verified is the condition that another controller owns.
const verified = "e2e.example.com/Verified"

// verifies sets the condition as its owner would: by server-side apply, with rights to the statuses of Releases only.
func (s *fixture) verifies(release, status, reason string) {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":"Release","metadata":{"name":%q,"namespace":%q},"status":{"conditions":[
		{"type":%q,"status":%q,"reason":%q,"message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		shipper.GroupVersion, release, s.Namespace, verified, status, reason)
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}}
	s.Must("setting "+verified, s.User.Status().Patch(s.Ctx, rel,
		client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner("verifier")))
}

// readiness returns what a Release reports of its step's readiness gates.
func (s *fixture) readiness(release string) func() (string, error) {
	return func() (string, error) {
		rel, err := s.Get(release)
		if err != nil || rel.Status.Strategy == nil {
			return "", err
		}
		out := fmt.Sprintf("waiting %s, command %s", rel.Status.Strategy.State.WaitingForReadiness, rel.Status.Strategy.State.WaitingForCommand)
		for _, c := range rel.Status.Strategy.Conditions {
			if c.Type == shipper.StrategyContenderAchievedReadiness {
				out += fmt.Sprintf(", %s %s %s", c.Status, c.Reason, c.Message)
			}
		}
		return out, nil
	}
}

// TestStepWaitsForTheConditionOfAnotherController has a readiness gate in the first and the last step. Other steps, retreats
// and the abort do not wait for it.
func TestStepWaitsForTheConditionOfAnotherController(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		s.Edits(func(app *shipper.Application) {
			app.Spec.Template = s.application("0.0.2", 4, vanguard).Spec.Template
			app.Spec.Template.Strategy.Steps[0].ReadinessGates = []string{verified}
			app.Spec.Template.Strategy.Steps[2].ReadinessGates = []string{verified}
		})
		contender := s.Release(1)
		verifier, _ := s.as("verifier", rbacv1.PolicyRule{
			APIGroups: []string{shipper.GroupName}, Resources: []string{"releases/status"}, Verbs: []string{"patch"},
		})
		lacks := fmt.Sprintf("release %q lacks conditions that others set in its status: %s ", contender, verified)
		closed := "waiting True, command False, False GatesNotReady " + lacks
		s.Eventually("the gate is waited for", closed+"is not there yet", s.readiness(contender))
		s.readyPods(contender, 1)
		s.says("waiting: "+lacks+"is not there yet", "rollout", "status", s.App)
		if out, err := s.shipperctl("rollout", "advance", s.App); err == nil {
			t.Errorf("advancing past a gate is not asked for twice: %s", out)
		}
		verifier.verifies(contender, "False", "TestsFailed")
		s.Eventually("the gate is closed", closed+"is False, TestsFailed", s.readiness(contender))
		verifier.verifies(contender, "True", "")
		s.Eventually("the gate is open", "waiting False, command True, True  ", s.readiness(contender))
		s.WaitsForCommand(contender, 0)

		verifier.verifies(contender, "False", "Regressed")
		s.Steps(contender, 1) // a step without readiness gates
		s.WaitsForCommand(contender, 1)
		s.Steps(contender, 2)
		s.Eventually("the last gate is waited for", closed+"is False, Regressed", s.readiness(contender))
		s.Steps(contender, 0) // this step's gate was passed before
		s.WaitsForCommand(contender, 0)
		s.readyPods(incumbent, 4)
		s.Steps(contender, 2)
		verifier.verifies(contender, "True", "")
		s.Completes(contender)
		rel, err := s.Get(contender)
		s.Must("reading the release", err)
		c := shipper.FindCondition(rel.Status.Conditions, verified)
		if c == nil || c.Status != "True" || c.LastTransitionTime.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
			t.Errorf("the condition of the other is %+v", c)
		}
	})
}
