// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// guardPolicies returns the policies of the guard.
func guardPolicies(t *testing.T) []admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	objects, err := Objects(Guard)
	if err != nil {
		t.Fatal(err)
	}
	var out []admissionregistrationv1.ValidatingAdmissionPolicy
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &p, true); err != nil {
			t.Fatalf("%s: %v", o.GetName(), err)
		}
		out = append(out, p)
	}
	return out
}

// TestTheGuardIsReadByTheOldestAPIServerThatServesPolicies compiles every expression as Kubernetes 1.30 does: with the CEL environment
// of 1.29, which an API server uses so that it can be rolled back.
func TestTheGuardIsReadByTheOldestAPIServerThatServesPolicies(t *testing.T) {
	known := environment.MustBaseEnvSet(version.MajorMinor(1, 29))
	for _, p := range guardPolicies(t) {
		t.Run(p.Name, func(t *testing.T) {
			compiler, err := plugincel.NewCompositedCompiler(known)
			if err != nil {
				t.Fatal(err)
			}
			options := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil}
			compile := func(e plugincel.ExpressionAccessor) {
				t.Helper()
				if err := compiler.CompileCELExpression(e, options, environment.NewExpressions).Error; err != nil {
					t.Errorf("%v\n%s", err, e.GetExpression())
				}
			}
			// matchConditions cannot use the policy's variables.
			for _, c := range p.Spec.MatchConditions {
				compile((*matchconditions.MatchCondition)(&c))
			}
			for _, v := range p.Spec.Variables {
				result := compiler.CompileAndStoreVariable(
					&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.NewExpressions)
				if result.Error != nil {
					t.Errorf("%s: %v\n%s", v.Name, result.Error, v.Expression)
				}
			}
			for _, v := range p.Spec.Validations {
				compile(&validating.ValidationCondition{Expression: v.Expression})
				compile(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
			}
			for _, a := range p.Spec.AuditAnnotations {
				compile(&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
			}
		})
	}
}
