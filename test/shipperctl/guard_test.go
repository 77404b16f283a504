// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onlyWest is a clusters.yaml with one cluster.
const onlyWest = "applicationClusters:\n- {name: eu-west-1, region: eu-west}\n"

// policyNames are the names of the guard's policies without what all of them end in.
var policyNames = []string{"deletions", "deployments", "endpoints", "pods", "scale", "services", "templates"}

const ofGuard = ".guard.shipper.booking.com"

func joinWithAGuard(t *testing.T) {
	out := succeeds(t, "join", "-f", file(t, onlyWest), "--webhook-ignore", "--guard")
	_, got, _ := strings.Cut(out, "\nFinished joining management cluster to application cluster eu-west-1\n\n")
	want := `Guarding what Shipper owns in cluster eu-west-1:
Creating a ValidatingAdmissionPolicy called deletions.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called deployments.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called endpoints.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called pods.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called scale.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called services.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called templates.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called deletions.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called deployments.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called endpoints.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called pods.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called traffic.pods.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called scale.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called services.guard.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called templates.guard.shipper.booking.com... done
Finished guarding what Shipper owns in cluster eu-west-1

`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the end of the output (-want +got)\n%s", diff)
	}
	guardIs(t, "shipper:break-glass", "shipper-system:shipper-app-cluster")
	forges(t, "is refused")
}

func joinWithAGuardAgainWritesNothing(t *testing.T) {
	settle(t, application(t, west))
	before := versions(t)
	for _, flags := range [][]string{{"--guard"}, {}} {
		out := succeeds(t, append([]string{"join", "-f", file(t, onlyWest), "--webhook-ignore"}, flags...)...)
		if diff := cmp.Diff(before, versions(t)); diff != "" {
			t.Errorf("join %v has written\n%s", flags, diff)
		}
		if strings.Contains(out, "Updating") || strings.Contains(out, "Note: the guard") {
			t.Errorf("join %v says\n%s", flags, out)
		}
	}
}

func joinWithAnotherBreakGlassGroup(t *testing.T) {
	path := file(t, onlyWest)
	out := succeeds(t, "join", "-f", path, "--webhook-ignore", "--guard", "--guard-break-glass-group", `on"call`)
	line := "Creating a ValidatingAdmissionPolicy called scale.guard.shipper.booking.com... already exists. Updating... done\n"
	if !strings.Contains(out, line) {
		t.Errorf("the output is\n%s", out)
	}
	guardIs(t, `on"call`, "shipper-system:shipper-app-cluster")
	succeeds(t, "join", "-f", path, "--webhook-ignore")
	guardIs(t, `on"call`, "shipper-system:shipper-app-cluster")
	succeeds(t, "join", "-f", path, "--webhook-ignore", "--guard")
	guardIs(t, "shipper:break-glass", "shipper-system:shipper-app-cluster")
}

// joinRepairsTheGuard changes everything that a user may: join restores Shipper's fields and keeps the user's.
func joinRepairsTheGuard(t *testing.T) {
	c := application(t, west)
	p := get(t, c, &admissionregistrationv1.ValidatingAdmissionPolicy{}, "", "pods"+ofGuard)
	want := p.DeepCopy().Spec
	mine := admissionregistrationv1.MatchCondition{Name: "not-velero", Expression: `request.userInfo.username != "velero"`}
	want.MatchConditions = append(want.MatchConditions, mine)
	p.Spec.Validations[0].Expression = "true"
	p.Spec.MatchConditions = append(p.Spec.MatchConditions[1:], mine)
	if err := c.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b := get(t, c, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, "", "services"+ofGuard)
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	old := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "former" + ofGuard, Labels: map[string]string{"shipper.booking.com/guard": ""},
	}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "pods" + ofGuard, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	if err := c.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	out := succeeds(t, "join", "-f", file(t, onlyWest), "--webhook-ignore", "--guard")
	if line := "Removing the ValidatingAdmissionPolicyBinding called former" + ofGuard + "... done\n"; !strings.Contains(out, line) {
		t.Errorf("the output is\n%s", out)
	}
	p = get(t, c, &admissionregistrationv1.ValidatingAdmissionPolicy{}, "", "pods"+ofGuard)
	if diff := cmp.Diff(byName(want), byName(p.Spec)); diff != "" {
		t.Errorf("the policy (-want +got)\n%s", diff)
	}
	get(t, c, b, "", b.Name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); !apierrors.IsNotFound(err) {
		t.Errorf("a binding of an earlier version: %v", err)
	}
}

// byName is a policy without the order of its conditions.
func byName(p admissionregistrationv1.ValidatingAdmissionPolicySpec) map[string]string {
	out := map[string]string{"validation": p.Validations[0].Expression}
	for _, c := range p.MatchConditions {
		out[c.Name] = c.Expression
	}
	return out
}

// theGuardKnowsAllAccounts runs after the cluster was joined from another place, as another account and without --guard.
func theGuardKnowsAllAccounts(t *testing.T) {
	args := []string{"join", "-n", "elsewhere", "--application-cluster-service-account", "second", "--webhook-ignore", "-f",
		file(t, "applicationClusters:\n- {name: west-again, context: eu-west-1, region: eu-west}\n")}
	out := succeeds(t, args...)
	note := "Note: the guard of cluster west-again does not know the account system:serviceaccount:elsewhere:second and refuses " +
		"what it does; run this again with --guard\n"
	if !strings.Contains(out, note) {
		t.Errorf("nothing is said about the account in\n%s", out)
	}
	guardIs(t, "shipper:break-glass", "shipper-system:shipper-app-cluster")
	succeeds(t, append(args, "--guard")...)
	guardIs(t, "shipper:break-glass", "shipper-system:shipper-app-cluster", "elsewhere:shipper-app-cluster", "elsewhere:second")
	if out := succeeds(t, args...); strings.Contains(out, "Note: the guard") {
		t.Errorf("the output is\n%s", out)
	}
}

func joinTakesTheGuardAway(t *testing.T) {
	path := file(t, onlyWest)
	want := "\nRemoving the guard of cluster eu-west-1:\n"
	for _, name := range []string{"deletions", "deployments", "endpoints", "pods", "scale", "services", "templates", "traffic.pods"} {
		want += "Removing the ValidatingAdmissionPolicyBinding called " + name + ofGuard + "... done\n"
	}
	for _, name := range policyNames {
		want += "Removing the ValidatingAdmissionPolicy called " + name + ofGuard + "... done\n"
	}
	want += "Finished removing the guard of cluster eu-west-1\n"
	if out := succeeds(t, "join", "-f", path, "--webhook-ignore", "--guard=false"); !strings.Contains(out, want) {
		t.Errorf("the output is\n%s", out)
	}
	for key := range versions(t) {
		if strings.Contains(key, ofGuard) {
			t.Errorf("%s is still there", key)
		}
	}
	forges(t, "passes")
	before := versions(t)
	out := succeeds(t, "join", "-f", path, "--webhook-ignore", "--guard=false")
	if !strings.Contains(out, "\nRemoving the guard of cluster eu-west-1:\nThere is none\n") {
		t.Errorf("the output is\n%s", out)
	}
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("the second run has written\n%s", diff)
	}
	succeeds(t, "join", "-f", path, "--webhook-ignore", "--guard")
	forges(t, "is refused")
}

func aGuardNeedsPolicies(t *testing.T) {
	old := withoutPolicies(t)
	before := versions(t)
	path := file(t, "applicationClusters:\n- {name: eu-west-1, context: old, region: r}\n- {name: us, context: us-east-1, region: r}\n")
	_, err := runIn(t, old, "join", "-f", path, "--webhook-ignore", "--guard")
	want := "cluster eu-west-1 cannot be guarded: its API server does not serve ValidatingAdmissionPolicy of " +
		"admissionregistration.k8s.io/v1, as Kubernetes does from 1.30 on; join it without --guard, and limit by RBAC who may edit " +
		"what Shipper installs"
	if err == nil || err.Error() != want {
		t.Errorf("the error is\n%v\nand should be\n%s", err, want)
	}
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("a join that cannot work has written\n%s", diff)
	}
	path = file(t, "applicationClusters:\n- {name: eu-west-1, context: old, region: eu-west, apiMaster: \""+server(t, west)+"\"}\n")
	for _, flag := range []string{"--guard=false", "--webhook-ignore"} {
		if out, err := runIn(t, old, "join", "-f", path, "--webhook-ignore", flag); err != nil {
			t.Errorf("join %s: %v\n%s", flag, err, out)
		}
	}
}

func theFlagsOfTheGuardAreChecked(t *testing.T) {
	path := file(t, onlyWest)
	fails(t, "--guard-break-glass-group is for the guard: give --guard as well", "join", "-f", path, "--guard-break-glass-group", "oncall")
	fails(t, "give --guard as well", "join", "-f", path, "--guard=false", "--guard-break-glass-group", "oncall")
	fails(t, `the break-glass group is ""`, "join", "-f", path, "--guard", "--guard-break-glass-group", "")
	fails(t, "which holds everybody", "join", "-f", path, "--guard", "--guard-break-glass-group", "system:authenticated")
}
