// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTheGuardIsTakenAwayAndComesBack does so while Shipper runs.
func TestTheGuardIsTakenAwayAndComesBack(t *testing.T) {
	s := begin(t, "again-")
	release := s.rolledOut()
	somebody := client.NewDryRunClient(as(t, "jdoe", "system:masters"))
	for _, step := range []struct {
		flag  string
		holds bool
	}{{"--guard=false", false}, {"--guard=false", false}, {"--guard", true}} {
		out, err := shipperctl(s.Ctx, "clusters", "join", step.flag)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.Must("waiting", holds(s.Ctx, step.holds))
		err = scales(s.deployment(release), 7)(s.Ctx, somebody)
		if guarded(err) != step.holds || !step.holds && err != nil {
			t.Errorf("after %s, scaling is answered: %v", step.flag, err)
		}
	}
}

// TestKubernetesFindsNoFaultWithThePolicies reads what the API server says of types in their expressions.
func TestKubernetesFindsNoFaultWithThePolicies(t *testing.T) {
	s := begin(t, "types-")
	s.Eventually("policies whose types were checked", "7 of 7", func() (string, error) {
		list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		err := world.cluster.List(s.Ctx, list)
		checked := 0
		for _, p := range list.Items {
			if p.Status.ObservedGeneration == p.Generation && p.Status.TypeChecking != nil {
				checked++
			}
		}
		return fmt.Sprintf("%d of %d", checked, len(list.Items)), err
	})
	list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	s.Must("listing policies", world.cluster.List(s.Ctx, list))
	for _, p := range list.Items {
		if diff := cmp.Diff([]admissionregistrationv1.ExpressionWarning(nil), p.Status.TypeChecking.ExpressionWarnings); diff != "" {
			t.Errorf("%s:\n%s", p.Name, diff)
		}
	}
}
