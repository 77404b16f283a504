// SPDX-License-Identifier: Apache-2.0

package shipyard_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/shipyard"
)

var errAway = errors.New("away")

// shop is a Shipyard with two stages, changed by edits.
func shop(edits ...func(*shipper.Shipyard)) *shipper.Shipyard {
	tasks := []shipper.Task{{Name: "deployment"}}
	yard := &shipper.Shipyard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"},
		Spec: shipper.ShipyardSpec{Stages: []shipper.Stage{
			{Name: "staging", Sequences: []shipper.Sequence{{Name: "delivery", Tasks: tasks}}},
			{Name: "production", Namespace: "shop-prod", Sequences: []shipper.Sequence{
				{Name: "delivery", Tasks: tasks, TriggeredOn: []shipper.Trigger{{Event: "staging.delivery.finished"}}},
			}},
		}},
	}
	for _, edit := range edits {
		edit(yard)
	}
	return yard
}

func run(name string, finished bool) *shipper.SequenceRun {
	out := &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: shipper.SequenceRunSpec{Shipyard: "shop"}}
	if finished {
		out.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
	}
	return out
}

func webhook(t *testing.T, rights *ask.Rights, known ...client.Object) *shipyard.Webhook {
	t.Helper()
	w := ask.Know(t, rights, known...)
	return &shipyard.Webhook{State: w.State, Authz: rights, Reconciler: ask.Reconciler}
}

func unused(yard *shipper.Shipyard) { yard.Spec.Stages[1].Sequences[0].TriggeredOn = nil }

func unmeasured(yard *shipper.Shipyard) {
	yard.Spec.Stages[0].Sequences[0].Tasks = []shipper.Task{{Name: "deployment"}, {Name: "evaluation"}}
}

func empty(yard *shipper.Shipyard) { yard.Spec.Stages[0].Sequences[0].Tasks = nil }

func otherRunner(yard *shipper.Shipyard) { yard.Spec.ServiceAccountName = "deployer" }

func longName(yard *shipper.Shipyard) {
	yard.Name = "a234567890123456789012345678901234567890123456789012345678901234"
}

func TestShipyardsAreValidated(t *testing.T) {
	const (
		author = "dev impersonate serviceaccounts shop/shipper-runner"
		bound  = ask.Reconciler + " impersonate serviceaccounts shop/shipper-runner"
	)
	edited := func(yard *shipper.Shipyard) { yard.Labels = map[string]string{"a": "b"} }
	second := shop(func(yard *shipper.Shipyard) { yard.Name = "second" })
	elsewhere := shop(func(yard *shipper.Shipyard) { yard.Namespace = "other" })
	for sentence, tc := range map[string]struct {
		rights   *ask.Rights
		req      *admission.Request
		decision response.Decision
		message  string
		warnings []string
	}{
		"one that can be run": {rights: ask.Grant(author, bound), req: ask.Create("dev", shop())},
		"one whose runner is not bound": {
			rights: ask.Grant(author), req: ask.Create("dev", shop()), warnings: []string{
				"ServiceAccount shipper-runner is not bound to Shipper, and runs fail until it is: kubectl create rolebinding " +
					"shipper-runner-impersonator -n shop " +
					"--clusterrole=shipper-runner-impersonator --serviceaccount=shipper-system:shipper-mgmt-cluster",
			},
		},
		"by a user who may not act as the runner": {
			rights: ask.Grant(), req: ask.Create("dev", shop()), decision: response.Forbidden,
			message: `user "dev" may not impersonate serviceaccounts/shipper-runner in shop, as which runs of Shipyard shop ` +
				`write: ask who owns the ` +
				"namespace for: kubectl create role shipper-runner -n shop --verb=impersonate --resource=serviceaccounts " +
				"--resource-name=shipper-runner, and a rolebinding to it",
		},
		"with a runner that the user may not act as": {
			rights: ask.Grant(author, bound), req: ask.Update("dev", shop(otherRunner), shop()), decision: response.Forbidden,
			message: `user "dev" may not impersonate serviceaccounts/deployer in shop, as which runs of Shipyard shop write: ask who owns the ` +
				"namespace for: kubectl create role deployer -n shop --verb=impersonate --resource=serviceaccounts " +
				"--resource-name=deployer, and a rolebinding to it",
		},
		"of which only metadata change": {rights: ask.Grant(), req: ask.Update("dev", shop(edited), shop())},
		"while rights are not known": {
			rights: &ask.Rights{Err: errAway}, req: ask.Create("dev", shop()), decision: response.Unavailable, message: "away",
		},
		"with a sequence without tasks": {
			rights: ask.Grant(author, bound), req: ask.Create("dev", shop(empty)), decision: response.Invalid,
			message: `Shipyard.shipper.booking.com "shop" is invalid: spec.stages[0].sequences[0].tasks: Required value: ` +
				`sequence delivery has no tasks`,
		},
		"with a name that is no label": {
			rights: ask.Grant(author, bound), req: ask.Create("dev", shop(longName)), decision: response.Invalid,
			message: `Shipyard.shipper.booking.com "a234567890123456789012345678901234567890123456789012345678901234" is invalid: metadata.name: ` +
				`Invalid value: "a234567890123456789012345678901234567890123456789012345678901234": is a label of all its runs: must be no more ` +
				"than 63 bytes",
		},
		"with a stage that nothing starts": {
			rights: ask.Grant(author, bound), req: ask.Create("dev", shop(unused)),
			warnings: []string{"stages[1]: no event starts a run in stage production: it is started by hand"},
		},
		"with an evaluation that measures nothing": {
			rights: ask.Grant(author, bound), req: ask.Create("dev", shop(unmeasured)),
			warnings: []string{"stages[0].sequences[0].tasks[1]: task evaluation names no Checks: it passes, and nothing is measured; " +
				"name Checks in properties.checks"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			ask.CheckRefusal(t, webhook(t, tc.rights, shop()).Validate(t.Context(), tc.req, a), tc.decision, tc.message)
			if diff := cmp.Diff(tc.warnings, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	a := &response.Response{}
	if err := webhook(t, ask.Grant(author, bound), second, elsewhere).Validate(t.Context(), ask.Create("dev", shop()), a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"stage production deploys to the Applications shop-prod/{service}, and so does a Shipyard of another namespace",
		"stage production deploys to the Applications shop-prod/{service}, and so does stage production of Shipyard second",
		"stage staging deploys to the Applications shop/{service}-staging, and so does stage staging of Shipyard second",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("with an Application that another Shipyard deploys to (-want +got):\n%s", diff)
	}
}

func TestShipyardsWithRunsUnderWayAreKept(t *testing.T) {
	going := ask.GoingNamespace("shop")
	deletion := func(options string) *admission.Request {
		req := ask.Delete("dev", shop())
		req.Options = runtime.RawExtension{Raw: []byte(options)}
		return req
	}
	const keep = ": abort them first, or keep the runs by --cascade=orphan"
	for sentence, tc := range map[string]struct {
		known   []client.Object
		options string
		message string
	}{
		"without runs":             {nil, "", ""},
		"with finished runs":       {[]client.Object{run("a", true)}, "", ""},
		"with one under way":       {[]client.Object{run("a", true), run("b", false)}, "", "run b is under way" + keep},
		"with two under way":       {[]client.Object{run("c", false), run("b", false)}, `{}`, "runs b, c are under way" + keep},
		"with one that is to stay": {[]client.Object{run("b", false)}, `{"propagationPolicy":"Orphan"}`, ""},
		"with one that is to be deleted": {
			[]client.Object{run("b", false)}, `{"propagationPolicy":"Foreground"}`, "run b is under way" + keep,
		},
		"in a namespace that is going away": {[]client.Object{run("b", false), going}, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Forbidden
			}
			err := webhook(t, ask.Grant(), tc.known...).Validate(t.Context(), deletion(tc.options), &response.Response{})
			ask.CheckRefusal(t, err, decision, tc.message)
		})
	}
	owned := shop()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "mine"}}
	err := webhook(t, ask.Grant(), run("b", false)).Validate(t.Context(), ask.Update("dev", owned, shop()), &response.Response{})
	ask.CheckRefusal(t, err, response.Forbidden, "run b is under way"+keep)
}
