// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/response"
)

const (
	mayPlaceRoles = "dev place clusterroles.rbac.authorization.k8s.io /admin"
	annSelected   = `user "ann" changed spec last, and may be asked; whether that user may: kubectl auth can-i place ` +
		"clusterroles.rbac.authorization.k8s.io/admin --as=ann"
)

// changes has an edit for each field of the spec of an Application with resources that needs the right to place. Fields that a template
// with resources cannot have are empty.
var changes = map[string]func(*shipper.ApplicationSpec){
	"RevisionHistoryLimit": func(s *shipper.ApplicationSpec) { s.RevisionHistoryLimit = ptrTo(int32(3)) },
	"Template.Chart":       nil, "Template.Values": nil, "Template.ValuesPerRegion": nil,
	"Template.ValuesPerCluster": nil, "Template.ValuesFrom": nil, "Template.ValuesDigests": nil, "Template.ResourcesDigest": nil,
	"RollbackTo":  nil, // see TestARollbackOfResourcesNeedsTheRightToPlace
	"DriftPolicy": func(s *shipper.ApplicationSpec) { s.DriftPolicy = shipper.DriftCorrect },
	"Template.ClusterRequirements": func(s *shipper.ApplicationSpec) {
		s.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{}}
	},
	"Template.Strategy": func(s *shipper.ApplicationSpec) {
		all := intstr.FromString("100%")
		s.Template.Strategy.Rolling = &shipper.RollingClusters{MaxUnavailable: &all}
	},
	"Template.Apply": func(s *shipper.ApplicationSpec) { s.Template.Apply = &shipper.Apply{TakeOver: shipper.TakeOverAlways} },
	"Template.Resources.Select": func(s *shipper.ApplicationSpec) { // narrowed
		s.Template.Resources.Select = s.Template.Resources.Select[:1]
	},
	"Template.Resources.Follow":  func(s *shipper.ApplicationSpec) { s.Template.Resources.Follow = shipper.FollowOnRefresh },
	"Template.Resources.Removal": func(s *shipper.ApplicationSpec) { s.Template.Resources.Removal = shipper.RemovalNone },
	"Template.Resources.Ready": func(s *shipper.ApplicationSpec) {
		s.Template.Resources.Ready = []shipper.ReadyRule{{Kind: "ConfigMap", Expression: "true"}}
	},
}

// TestEachFieldOfSpecNeedsTheRightToPlace changes one field after the other of an Application that ann selected, as dev who may edit it.
func TestEachFieldOfSpecNeedsTheRightToPlace(t *testing.T) {
	for _, of := range []struct {
		prefix string
		kind   reflect.Type
	}{
		{"", reflect.TypeFor[shipper.ApplicationSpec]()}, {"Template.", reflect.TypeFor[shipper.ReleaseEnvironment]()},
		{"Template.Resources.", reflect.TypeFor[shipper.Resources]()},
	} {
		for field := range of.kind.Fields() {
			if name := of.prefix + field.Name; name != "Template" && name != "Template.Resources" {
				if _, known := changes[name]; !known {
					t.Errorf("no edit of %s", name)
				}
			}
		}
	}
	edits := []func(*shipper.Application){ask.Placing(ownMap, roles), ask.SelectedBy("ann")}
	old := ask.Application(edits...)
	released := ask.Release(ask.Application(append(slices.Clone(edits), ask.Content("a"))...), nil)
	for name, change := range changes {
		if change == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			now := ask.Application(append(slices.Clone(edits), func(app *shipper.Application) { change(&app.Spec) })...)
			_, _, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads), released), ask.Update("dev", now, old))
			var refusal *response.Refusal
			if !errors.As(err, &refusal) || refusal.Decision != response.Forbidden || !strings.HasSuffix(err.Error(), annSelected) {
				t.Errorf("without the right it is %v", err)
			}
			got, _, err := admit(t, placing(t, ask.Grant(mayGet, mayPlaceRoles, shipperReads), released), ask.Update("dev", now, old))
			ask.CheckRefusal(t, err, "", "")
			if err == nil && got.Annotations[shipper.AppSelectedByAnnotation] != `{"username":"dev"}` {
				t.Errorf("placed with the rights of %s", got.Annotations[shipper.AppSelectedByAnnotation])
			}
		})
	}
}

// What is no longer placed is removed: a chart in place of resources needs the right to what was placed.
func TestToReplaceResourcesByAChartNeedsTheRightToPlace(t *testing.T) {
	now := ask.Application(func(app *shipper.Application) { app.Namespace = ask.Work })
	_, _, err := admit(t, placing(t, ask.Grant()), ask.Update("dev", now, ask.Application(ask.Placing(roles), ask.SelectedBy("ann"))))
	var refusal *response.Refusal
	if !errors.As(err, &refusal) || refusal.Decision != response.Forbidden || !strings.HasSuffix(err.Error(), annSelected) {
		t.Errorf("it is %v", err)
	}
}

// What an Envelope holds for other namespaces is known by the record of the reconciler alone: an Application whose selectors are of its own
// namespace is changed, deleted and given an owner with the rights to that.
func TestWhatAnEnvelopePlacesElsewhereNeedsTheRightToPlace(t *testing.T) {
	const mayPlace, mayGetIt = "dev place namespaces /payments", "dev get envelopes work/guard"
	envelope := shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"}
	recorded := ask.Annotated(shipper.ContentRightsAnnotation, "namespaces/payments")
	edits := []func(*shipper.Application){ask.Placing(envelope), ask.SelectedBy("ann"), recorded}
	old := ask.Application(edits...)
	rel := ask.Release(ask.Application(append(slices.Clone(edits), ask.Content("a"))...), nil)
	metav1.SetMetaDataAnnotation(&rel.ObjectMeta, shipper.ContentRightsAnnotation, "namespaces/payments")
	drift := ask.Application(append(slices.Clone(edits), func(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftCorrect })...)
	owned := ask.Application(edits...)
	owned.OwnerReferences = append(owned.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: "own"})
	change := func(now *shipper.Application) func(*application.Webhook) error {
		return func(w *application.Webhook) error {
			_, _, err := admit(t, w, ask.Update("dev", now, old))
			return err
		}
	}
	for name, try := range map[string]func(*application.Webhook) error{
		"corrects drift": change(drift), "gets an owner": change(owned),
		"deletes it": func(w *application.Webhook) error {
			return w.Validate(t.Context(), ask.Delete("dev", old), &response.Response{})
		},
	} {
		for right, want := range map[string]response.Decision{mayPlace: "", "none": response.Forbidden} {
			err := try(placing(t, ask.Grant(mayGetIt, shipperReads, right), rel))
			var refusal *response.Refusal
			if refused := errors.As(err, &refusal); refused != (want != "") || refused && (refusal.Decision != want ||
				!strings.Contains(err.Error(), `an Envelope has objects of others: you may not place namespaces "payments" on clusters`)) {
				t.Errorf("%s with the right %q: %v", name, right, err)
			}
		}
	}
	forged := ask.Application(ask.Placing(envelope), ask.SelectedBy("ann"), ask.Annotated(shipper.ContentRightsAnnotation, ""))
	_, _, err := admit(t, placing(t, ask.Grant(mayGetIt, shipperReads), rel), ask.Update("dev", forged, old))
	ask.CheckRefusal(t, err, response.Invalid, `Application.shipper.booking.com "super-server" is invalid: metadata.annotations[`+
		shipper.ContentRightsAnnotation+`]: Forbidden: is written by Shipper; leave it out, or at "namespaces/payments"`)
}

// A kind that is no longer served is judged by its plural, so that its objects can be removed by a user with the right.
func TestAKindThatIsGoneIsRemovedWithTheRightToPlace(t *testing.T) {
	gone := shipper.ResourceSelector{Group: "example.com", Kind: "Policy", Name: "a"}
	now, old := ask.Application(ask.Placing(ownMap)), ask.Application(ask.Placing(gone, ownMap), ask.SelectedBy("dev"))
	for right, want := range map[string]response.Decision{"dev place policies.example.com /a": "", "none": response.Forbidden} {
		_, _, err := admit(t, placing(t, ask.Grant(mayGet, shipperReads, right)), ask.Update("dev", now, old))
		var refusal *response.Refusal
		if refused := errors.As(err, &refusal); refused != (want != "") || refused && refusal.Decision != want {
			t.Errorf("with the right %q it is %v, want %q", right, err, want)
		}
	}
}

// A rollback places what a Release of another user has placed: the user who goes back needs the right at that time.
func TestARollbackOfResourcesNeedsTheRightToPlace(t *testing.T) {
	by := ask.SelectedBy("ann")
	before := ask.Release(ask.Application(ask.Placing(roles), ask.Content("a"), by), nil)
	newest := ask.Release(ask.Application(ask.Placing(ownMap), ask.Content("b"), by), []*shipper.Release{before})
	stored := ask.Application(ask.Placing(ownMap), by)
	now := stored.DeepCopy()
	now.Spec.RollbackTo = &shipper.RollbackTo{Release: before.Name}
	_, _, err := admit(t, placing(t, ask.Grant(mayGet), before, newest), ask.Update("dev", now, stored))
	var refusal *response.Refusal
	if !errors.As(err, &refusal) || refusal.Decision != response.Forbidden || !strings.HasSuffix(err.Error(), annSelected) {
		t.Errorf("without the right it is %v", err)
	}
	got, a, err := admit(t, placing(t, ask.Grant(mayGet, mayPlaceRoles), before, newest), ask.Update("dev", now, stored))
	ask.CheckRefusal(t, err, "", "")
	if diff := cmp.Diff(ask.Application(ask.Placing(roles)).Spec.Template, got.Spec.Template); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	if by := got.Annotations[shipper.AppSelectedByAnnotation]; by != `{"username":"dev"}` {
		t.Errorf("selected by %s", by)
	}
	if got := strings.Join(a.Warnings(), "\n"); !strings.Contains(got, "this rolls back from Release "+newest.Name) {
		t.Errorf("warned of %s", got)
	}
}

// A deletion removes what was placed, by a user with the right; where removal is None it removes nothing.
func TestADeletionThatRemovesResourcesNeedsTheRightToPlace(t *testing.T) {
	const removes = "deleting it removes what it has placed: spec.template.resources.select[0]: you may not place " +
		`clusterroles.rbac.authorization.k8s.io "admin" on clusters: that needs the verb "place" on it; ` +
		"kubectl create clusterrole place-clusterroles-admin --verb=place --resource=clusterroles.rbac.authorization.k8s.io " +
		"--resource-name=admin; " +
		"kubectl create clusterrolebinding place-clusterroles-admin-dev --clusterrole=place-clusterroles-admin --user=dev; " + annSelected
	by := ask.SelectedBy("ann")
	keeps := func(app *shipper.Application) { app.Spec.Template.Resources.Removal = shipper.RemovalNone }
	ofRoles := ask.Release(ask.Application(ask.Placing(roles), ask.Content("a"), by), nil)
	ofKept := ask.Release(ask.Application(ask.Placing(roles), ask.Content("a"), by, keeps), nil)
	for name, tc := range map[string]struct {
		app     *shipper.Application
		release *shipper.Release
		user    string
		right   string
		message string
	}{
		"without the right":                             {ask.Application(ask.Placing(roles), by), ofRoles, "dev", "none", removes},
		"with the right":                                {ask.Application(ask.Placing(roles), by), ofRoles, "dev", mayPlaceRoles, ""},
		"where nothing is removed":                      {ask.Application(ask.Placing(roles), by, keeps), ofKept, "dev", "none", ""},
		"where the Release does not know that yet":      {ask.Application(ask.Placing(roles), by, keeps), ofRoles, "dev", "none", removes},
		"where the Release has what the template lacks": {ask.Application(ask.Placing(ownMap), by, keeps), ofRoles, "dev", "none", removes},
		"by the garbage collector, with its owner": {
			ask.Application(ask.Placing(roles), by), ofRoles, "system:serviceaccount:kube-system:generic-garbage-collector", "none", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hook := placing(t, ask.Grant(tc.right), tc.release)
			err := hook.Validate(t.Context(), ask.Delete(tc.user, tc.app), &response.Response{})
			if tc.message == "" {
				ask.CheckRefusal(t, err, "", "")
				return
			}
			ask.CheckRefusal(t, err, response.Forbidden, tc.message)
		})
	}
	owned := ask.Application(ask.Placing(roles), by)
	owned.OwnerReferences = append(owned.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: "own"})
	_, _, err := admit(t, placing(t, ask.Grant(), ofRoles), ask.Update("dev", owned, ask.Application(ask.Placing(roles), by)))
	ask.CheckRefusal(t, err, response.Forbidden, removes)
}
