// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/response"
)

// placing is webhookOf for resources.
func placing(t testing.TB, rights *ask.Rights, known ...client.Object) *application.Webhook {
	t.Helper()
	hook := webhookOf(t, rights, exact(), known...)
	hook.Resources = (&ask.World{Authz: rights}).Resources()
	return hook
}

// admit sends a request through mutation and validation, as the API server does, and returns what would be stored.
func admit(t testing.TB, hook *application.Webhook, req *admission.Request) (*shipper.Application, *response.Response, error) {
	t.Helper()
	a := &response.Response{}
	if err := hook.Default(t.Context(), req, a); err != nil {
		return nil, a, err
	}
	out := ask.Patched[shipper.Application](t, req, a)
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	mutated := *req
	mutated.Object = runtime.RawExtension{Raw: text}
	return out, a, hook.Validate(t.Context(), &mutated, a)
}

var (
	ownMap     = shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}
	ownSecrets = shipper.ResourceSelector{Kind: "Secret", LabelSelector: &metav1.LabelSelector{}}
	roles      = shipper.ResourceSelector{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "admin"}
)

const (
	mayGet       = "dev get configmaps work/web"
	shipperReads = ask.Reconciler + " list configmaps work/"
	denied       = "spec.template.resources.select[0]: "
)

// A tenant who may write Applications in namespace work, and read its ConfigMap web, tries to have Shipper copy what is not theirs.
func TestATenantCannotPlaceWhatBelongsToOthers(t *testing.T) {
	old := ask.Application(ask.Placing(ownMap), ask.SelectedBy("dev"))
	for name, tc := range map[string]struct {
		req     *admission.Request
		message string
	}{
		"every Secret of another namespace": {
			ask.Create("dev", ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "Secret", Name: "a", Namespace: "payments"}))),
			denied + `you may not place namespaces "payments" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-namespaces-payments --verb=place --resource=namespaces --resource-name=payments; " +
				"kubectl create clusterrolebinding place-namespaces-payments-dev --clusterrole=place-namespaces-payments --user=dev",
		},
		"another namespace with all content": {
			ask.Create("dev", ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "Namespace", Name: "payments"}))),
			denied + `you may not place namespaces "payments" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-namespaces-payments --verb=place --resource=namespaces --resource-name=payments; " +
				"kubectl create clusterrolebinding place-namespaces-payments-dev --clusterrole=place-namespaces-payments --user=dev",
		},
		"the own namespace with all content, which has Secrets": {
			ask.Create("dev", ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "Namespace", Name: "work"}))),
			denied + `you may not place namespaces "work" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-namespaces-work --verb=place --resource=namespaces --resource-name=work; " +
				"kubectl create clusterrolebinding place-namespaces-work-dev --clusterrole=place-namespaces-work --user=dev",
		},
		"ClusterRoles": {
			ask.Create("dev", ask.Application(ask.Placing(roles))),
			denied + `you may not place clusterroles.rbac.authorization.k8s.io "admin" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-clusterroles-admin --verb=place --resource=clusterroles.rbac.authorization.k8s.io " +
				"--resource-name=admin; " +
				"kubectl create clusterrolebinding place-clusterroles-admin-dev --clusterrole=place-clusterroles-admin --user=dev",
		},
		"the Secrets of the own namespace, which they may not list": {
			ask.Create("dev", ask.Application(ask.Placing(ownSecrets))),
			denied + "you may not list all secrets in namespace work, and only what its author may read is placed; " +
				"kubectl -n work create role list-secrets --verb=list --resource=secrets; " +
				"kubectl -n work create rolebinding list-secrets-dev --role=list-secrets --user=dev",
		},
		"one more selector beside what they may": {
			ask.Update("dev", ask.Application(ask.Placing(ownMap, ownSecrets), ask.SelectedBy("dev")), old),
			"spec.template.resources.select[1]: you may not list all secrets in namespace work, and only what its author may read is placed; " +
				"kubectl -n work create role list-secrets --verb=list --resource=secrets; " +
				"kubectl -n work create rolebinding list-secrets-dev --role=list-secrets --user=dev",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads)), tc.req)
			ask.CheckRefusal(t, err, response.Forbidden, tc.message)
		})
	}
}

// A digest in a template would be content that nobody was asked about, also for a user who may stamp.
func TestATemplateHasNoDigestOfContent(t *testing.T) {
	old, now := ask.Application(ask.Placing(ownMap), ask.SelectedBy("dev")), ask.Application(ask.Placing(ownMap), ask.Content("b"))
	for name, req := range map[string]*admission.Request{
		"on creation": ask.Create("dev", now), "in an edit": ask.Update("dev", now, old),
		"of the reconciler": ask.Update(ask.Reconciler, now, old),
	} {
		_, _, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads)), req)
		var refusal *response.Refusal
		if !errors.As(err, &refusal) || refusal.Decision != response.Invalid ||
			!strings.Contains(err.Error(), "spec.template.resourcesDigest: Forbidden: Shipper writes it in Releases: leave it out") {
			t.Errorf("%s it is %v", name, err)
		}
	}
}

func TestTheRecordOfWhoChoseResourcesCannotBeForged(t *testing.T) {
	old := ask.Application(ask.Placing(ownMap), ask.SelectedBy("dev"))
	forged := ask.Application(ask.Placing(ownMap), ask.SelectedBy("admin"))
	hook := placing(t, ask.Grant())
	_, _, err := admit(t, hook, ask.Update("dev", forged, old))
	ask.CheckRefusal(t, err, response.Invalid, `Application.shipper.booking.com "super-server" is invalid: `+
		"metadata.annotations[shipper.booking.com/app.selected-by]: Forbidden: is written by Shipper; "+
		`leave it out, or at "{\"username\":\"dev\"}"`)
	// A mutation that comes after Shipper's own is seen by validation alone.
	err = hook.Validate(t.Context(), ask.Update("dev", forged, old), &response.Response{})
	ask.CheckRefusal(t, err, response.Forbidden, "metadata.annotations[shipper.booking.com/app.selected-by] is written by Shipper: it names "+
		`the user who changed spec last, user "dev" here`)
}

func TestResourcesAreCompletedByTheWebhook(t *testing.T) {
	stored := ask.Application(ask.Placing(ownMap), ask.SelectedBy("ann"))
	other := shipper.ResourceSelector{Kind: "ConfigMap", Name: "other"}
	for name, tc := range map[string]struct {
		now *shipper.Application
		old *shipper.Application
		by  string
	}{
		"a new Application has a strategy": {
			ask.Application(ask.Placing(ownMap), func(app *shipper.Application) { app.Spec.Template.Strategy = nil }), nil, "dev",
		},
		"the same manifest again": {ask.Application(ask.Placing(ownMap)), stored, "ann"},
		"another strategy is the consent of another user": {
			ask.Application(ask.Placing(ownMap), func(app *shipper.Application) {
				app.Spec.Template.Strategy.OnFailure = shipper.OnFailureAbort
			}), stored, "dev",
		},
		"so are other selectors": {ask.Application(ask.Placing(other)), stored, "dev"},
		"so is a refresh": {
			ask.Application(ask.Placing(ownMap), ask.Annotated(shipper.AppResourcesRefreshAnnotation, "1")), stored, "dev",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := ask.Create("dev", tc.now)
			if tc.old != nil {
				req = ask.Update("dev", tc.now, tc.old)
			}
			got, _, err := admit(t, placing(t, ask.Grant(mayGet, "dev get configmaps work/other", shipperReads)), req)
			ask.CheckRefusal(t, err, "", "")
			want := *tc.now.Spec.Template.DeepCopy()
			if want.Strategy == nil {
				want.Strategy = &shipper.RolloutStrategy{}
			}
			if diff := cmp.Diff(want, got.Spec.Template); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if by := got.Annotations[shipper.AppSelectedByAnnotation]; by != `{"username":"`+tc.by+`"}` {
				t.Errorf("selected by %s, not %s", by, tc.by)
			}
		})
	}
}

func TestTheRecordHasTheGroupsOfTheUser(t *testing.T) {
	req := ask.Create("dev", ask.Application(ask.Placing(ownMap)))
	req.UserInfo = authenticationv1.UserInfo{Username: "dev", UID: "1", Groups: []string{"team-a", `q"uote<`}}
	got, _, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads)), req)
	ask.CheckRefusal(t, err, "", "")
	want := `{"username":"dev","uid":"1","groups":["team-a","q\"uote<"]}`
	if diff := cmp.Diff(want, got.Annotations[shipper.AppSelectedByAnnotation]); diff != "" {
		t.Errorf("annotation (-want +got):\n%s", diff)
	}
}

// An abort restores the template of a Release, and needs no right: the content was placed before.
func TestAnAbortOfResourcesAsksForNoRight(t *testing.T) {
	rel := ask.Release(ask.Application(ask.Placing(roles), ask.Content("a"), ask.SelectedBy("ann")), nil)
	now := ask.Application(ask.Placing(roles), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "0"))
	old := ask.Application(ask.Placing(ownMap), ask.SelectedBy("ann"), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "1"))
	block := ask.Block("global/dns")
	block.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockAbort}
	rights := ask.Grant()
	_, _, err := admit(t, placing(t, rights, rel, block), ask.Update(ask.Reconciler, now, old))
	ask.CheckRefusal(t, err, "", "")
	if len(rights.Asked) > 0 {
		t.Errorf("asked for %q", rights.Asked)
	}
}

// A rollback of content leaves the template as it is: it is noted, announced, and judged by blocks all the same.
func TestARollbackOfContentAloneIsJudged(t *testing.T) {
	by := ask.SelectedBy("ann")
	before := ask.Release(ask.Application(ask.Placing(ownMap), ask.Content("a"), by), nil)
	before.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	newest := ask.Release(ask.Application(ask.Placing(ownMap), ask.Content("b"), by), []*shipper.Release{before})
	stored := ask.Application(ask.Placing(ownMap), by)
	now := stored.DeepCopy()
	now.Spec.RollbackTo = &shipper.RollbackTo{Release: before.Name}
	freeze, rollbacks := ask.Block("global/dns"), ask.Block("global/dns")
	rollbacks.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRollback}
	_, _, err := admit(t, placing(t, ask.Grant(mayGet), before, newest, freeze), ask.Update("dev", now, stored))
	var refusal *response.Refusal
	if !errors.As(err, &refusal) || refusal.Decision != response.Blocked {
		t.Errorf("under a block it is %v", err)
	}
	got, a, err := admit(t, placing(t, ask.Grant(mayGet), before, newest, rollbacks), ask.Update("dev", now, stored))
	ask.CheckRefusal(t, err, "", "")
	if got.Annotations[shipper.AppRolledBackToAnnotation] != before.Name || got.Annotations[shipper.AppRequestedByAnnotation] != "dev" {
		t.Errorf("annotations: %v", got.Annotations)
	}
	if diff := cmp.Diff(stored.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	next := ask.Release(ask.Application(ask.Placing(ownMap), ask.Content("a"), by), []*shipper.Release{before, newest})
	if got := strings.Join(a.Warnings(), "\n"); !strings.Contains(got, shipper.MakesRelease+next.Name) {
		t.Errorf("warned of %s, not of %s", got, next.Name)
	}
}

func TestWhatShipperMayNotReadIsRefused(t *testing.T) {
	hook := placing(t, ask.Grant("dev list secrets work/"))
	_, _, err := admit(t, hook, ask.Create("dev", ask.Application(ask.Placing(ownSecrets))))
	ask.CheckRefusal(t, err, response.Invalid, `Application.shipper.booking.com "super-server" is invalid: `+
		"spec.template.resources.select[0]: "+
		"Forbidden: Shipper may not read secrets in namespace work, or there is none of that name; kubectl -n work create rolebinding "+
		"shipper-selector "+
		"--clusterrole=shipper-selector --serviceaccount=shipper-system:shipper-mgmt-cluster")
}

func TestPlansOfResources(t *testing.T) {
	req := func(app *shipper.Application) *admission.Request {
		req := ask.Update("dev", app, ask.Application(ask.Placing(ownMap), ask.SelectedBy("dev")))
		req.DryRun = ptrTo(true)
		return req
	}
	halt := func(app *shipper.Application) {
		app.Spec.Template.Apply = &shipper.Apply{Type: shipper.ApplyClientSide}
	}
	placed := ask.Release(ask.Application(ask.Placing(ownMap), ask.Content("a")), nil)
	got, a, err := admit(t, placing(t, ask.Grant(mayGet), placed), req(ask.Application(ask.Placing(ownMap), halt)))
	ask.CheckRefusal(t, err, "", "")
	ask.Content("a")(got)
	next := ask.Release(got, nil).Name
	want := []string{
		shipper.MakesRelease + next,
		shipper.PlannedRelease + next + " of resources, sha256 " + strings.Repeat("a", 64),
		shipper.Planned + "1 cluster: here",
		shipper.Planned + "of 1 cluster, at most 1 may be without a ready version at the same time; while clusters leave, at most 1 more may " +
			"have one",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	_, a, err = admit(t, placing(t, ask.Grant(mayGet)), req(ask.Application(ask.Placing(ownMap), halting)))
	ask.CheckRefusal(t, err, "", "")
	if got := strings.Join(a.Warnings(), " "); strings.Contains(got, "Halt") {
		t.Errorf("Halt is warned of with resources: %s", got)
	}
	other := shipper.ResourceSelector{Kind: "ConfigMap", Name: "other"}
	rights := ask.Grant(mayGet, "dev get configmaps work/other", shipperReads)
	_, a, err = admit(t, placing(t, rights), req(ask.Application(ask.Placing(other))))
	ask.CheckRefusal(t, err, "", "")
	want = []string{
		shipper.Planned + "Shipper would take what spec.template.resources selects and, if that is anything, make a Release of it",
		shipper.Planned + "1 cluster: here",
		shipper.Planned + "of 1 cluster, all are written at the same time: none has an earlier version",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestPlacementOfResourcesIsPlannedBeforeTheirContentIsTaken when an Application is created, by a dry run and by a real write.
func TestPlacementOfResourcesIsPlannedBeforeTheirContentIsTaken(t *testing.T) {
	fixed := func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{
			Placement: &shipper.Placement{Type: shipper.PickFixed, Clusters: []string{"here", "elsewhere"}},
		}
	}
	const unknown = `there is no Cluster "elsewhere"; it gets this when it joins (here is there)`
	for name, tc := range map[string]struct {
		dryRun bool
		want   []string
	}{
		"a dry run": {true, []string{
			shipper.Planned + "Shipper would take what spec.template.resources selects and, if that is anything, make a Release of it",
			shipper.Planned + "1 of 2 clusters wanted: here",
			shipper.Planned + `elsewhere: there is no Cluster "elsewhere": it is chosen when it joins`,
			shipper.Planned + "of 1 cluster, all are written at the same time: none has an earlier version",
			shipper.Planned + "RolloutBlock global/freeze will stop rollouts from 2026-11-21T14:00:00Z on, in 120m: " +
				"DNS issues, troubleshooting in progress",
			unknown,
		}},
		"a write": {false, []string{"Shipper takes the content of spec.template.resources now, and makes a Release of it", unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			req := ask.Create("dev", ask.Application(ask.Placing(ownMap), fixed))
			req.DryRun = &tc.dryRun
			_, a, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads), freeze()), req)
			ask.CheckRefusal(t, err, "", "")
			got := slices.DeleteFunc(slices.Clone(a.Warnings()), func(text string) bool { // those of what is selected are not asked for here
				return strings.HasPrefix(text, "select[") || strings.HasPrefix(text, "selects ")
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAPIServerThatSaysNothingOfKinds(t *testing.T) {
	late := func(rights ...string) *application.Webhook {
		hook := placing(t, ask.Grant(rights...))
		hook.Resources.Kinds = ask.Kinds{Err: context.DeadlineExceeded}
		return hook
	}
	_, _, err := admit(t, late(mayGet), ask.Create("dev", ask.Application(ask.Placing(ownMap))))
	ask.CheckRefusal(t, err, response.Unavailable, "select[0]: whether you may place it cannot be judged now: context deadline exceeded")
}
