// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// gate makes the API server itself refuse what a policy's rules say in namespaces that carry the label gate, as if a
// RolloutBlock were in effect that the reconcilers have not heard of.
func (s *rolloutFixture) gate(resources []string, operations ...admissionregistrationv1.OperationType) (open func()) {
	s.t.Helper()
	reason := metav1.StatusReasonForbidden
	meta := metav1.ObjectMeta{Name: s.namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: operations,
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{shipper.GroupName}, APIVersions: []string{"*"}, Resources: resources,
				},
			},
		}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "false", Message: "rollouts blocked by: far/away (unknown)", Reason: &reason,
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        s.namespace,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	s.must(s.Create(s.t.Context(), policy))
	s.must(s.Create(s.t.Context(), binding))
	return func() {
		s.t.Helper()
		s.must(s.Delete(s.t.Context(), binding))
		s.must(s.Delete(s.t.Context(), policy))
	}
}

// refuses waits until the gate is closed for an object.
func (s *rolloutFixture) refuses(try func() error) {
	s.t.Helper()
	s.until("refused", func() string {
		if err := try(); err == nil {
			return "let through"
		}
		return "refused"
	})
}

func TestTheGateMayKnowOfABlockFirst(t *testing.T) {
	t.Parallel()
	s := running(t)
	open := s.gate([]string{"releases"}, admissionregistrationv1.Create)
	s.refuses(func() error {
		rel := s.release(0).DeepCopy()
		rel.Name, rel.ResourceVersion, rel.UID = "try", "", ""
		return s.Create(t.Context(), rel, client.DryRunAll)
	})
	s.edit(1, vanguard)
	const blocked = "True RolloutsBlocked rollouts blocked by: far/away"
	s.until(blocked, s.appCondition(shipper.ApplicationBlocked))
	s.until("False RolloutsBlocked rollouts blocked by: far/away", s.appCondition(shipper.ApplicationReleaseSynced))
	open()
	s.until(serving+" | "+staging, s.shares)
	s.until("False", s.appCondition(shipper.ApplicationBlocked))

	open = s.gate([]string{"capacitytargets"}, admissionregistrationv1.Update)
	s.refuses(func() error {
		ct := &shipper.CapacityTarget{}
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(s.release(0)), ct))
		return s.Update(t.Context(), ct, client.DryRunAll)
	})
	s.goTo(1)
	s.until(blocked, s.relCondition(1, shipper.ReleaseBlocked))
	open()
	s.until(halfLeft+" | "+halfDone, s.shares)
	s.until("False", s.relCondition(1, shipper.ReleaseBlocked))
}

func TestWhatAnApplicationOverridesItsReleasesOverride(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.block("known")
	s.until("True RolloutsBlocked rollouts blocked by: "+s.namespace+"/known", s.appCondition(shipper.ApplicationBlocked))
	s.apply(func(app *shipper.Application) {
		app.Spec.Template = s.template(1, vanguard)
		app.Annotations[shipper.RolloutBlockOverrideAnnotation] = s.namespace + "/" + b.Name
	})
	s.until(serving+" | "+staging, s.shares)
	s.until("False", s.appCondition(shipper.ApplicationBlocked))
	s.until("True RolloutsBlocked rollouts blocked by: "+s.namespace+"/known", s.relCondition(0, shipper.ReleaseBlocked))
	s.until("False", s.relCondition(1, shipper.ReleaseBlocked))
	s.untilEvent("web", "RolloutBlockOverridden", s.namespace+"/known")
	s.untilEvent(s.release(1).Name, "RolloutBlockOverridden", s.namespace+"/known")
}

func TestABlockOfAllNamespacesHoldsEverybody(t *testing.T) {
	s := running(t)
	ns := &corev1.Namespace{}
	s.must(s.Get(t.Context(), client.ObjectKey{Name: shipper.GlobalBlocksNamespace}, ns))
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "dns"}}
	b.Spec.Message = "no"
	s.must(s.Create(t.Context(), b))
	s.until("True RolloutsBlocked rollouts blocked by: "+shipper.GlobalBlocksNamespace+"/dns", s.appCondition(shipper.ApplicationBlocked))
	s.until("True RolloutsBlocked rollouts blocked by: "+shipper.GlobalBlocksNamespace+"/dns", s.relCondition(0, shipper.ReleaseBlocked))
	s.must(s.Delete(t.Context(), b))
	s.until("False", s.appCondition(shipper.ApplicationBlocked))
	s.until("False", s.relCondition(0, shipper.ReleaseBlocked))
}

func TestOtherClustersAreTakenWithoutDisturbingThoseThatStay(t *testing.T) {
	t.Parallel()
	s := running(t)
	c := s.cluster("c")
	was := s.release(0)
	rel := was.DeepCopy()
	b := s.namespace + "-b"
	rel.Annotations[shipper.ReleaseClustersAnnotation] = b + "," + c
	rolloutTargets.setDown(t, true, s.namespace, c)
	s.must(s.Patch(t.Context(), rel, client.MergeFrom(was)))
	s.until("100%/100 100%/0 at full on, complete", s.shares)
	s.until("False StrategyInProgress step 0 (full on) waits: clusters pending installation: "+c+
		": ClusterUnreachable no answer. for more details try `kubectl describe it "+rel.Name+"`",
		s.relCondition(0, shipper.ReleaseStrategyExecuted))
	rolloutTargets.setDown(t, false, s.namespace, c)
	s.until(serving, s.shares)
	s.until("True", s.relCondition(0, shipper.ReleaseStrategyExecuted))
}

func TestWhatHappensIsToldInEvents(t *testing.T) {
	t.Parallel()
	s := running(t)
	rel := s.release(0)
	for _, want := range []struct{ reason, note string }{
		{"ClustersSelected", `Set clusters for "` + s.namespace + "/" + rel.Name + `" to ` + rel.Annotations[shipper.ReleaseClustersAnnotation]},
		{"ReleaseScheduled", `Created CapacityTarget "` + s.namespace + "/" + rel.Name + `"`},
		{"StrategyApplied", "step [0] finished"},
	} {
		s.untilEvent(rel.Name, want.reason, want.note)
	}
}
