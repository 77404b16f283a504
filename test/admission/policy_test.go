// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// TestThePolicyAloneKeepsControlState forges the state that Shipper writes, with both webhook configurations deleted.
func TestThePolicyAloneKeepsControlState(t *testing.T) {
	s := &lineCase{T: t, ns: namespace(t), charts: startRepository(t, "0.0.1", "0.0.2")}
	s.r = rollOut(t, s.ns, func(app *shipper.Application) {
		app.Finalizers = []string{shipper.RolloutFinalizer}
		app.Spec.Template.Strategy.Steps[0].Gate = &shipper.StepGate{}
	})
	grant(t, "skipper", "skip", "releases")
	grant(t, "approver", "approve", "releases")
	grant(t, "stamper", "stamp", "releases")
	grant(t, "stamper", "stamp", "applications")
	env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error { return mayStamp(ctx, "stamper", s.ns) })
	withoutWebhooks(t)
	annotated := func(key string) func(*lineCase, *user) error { return updating(ask.Annotated(key, "forged")) }
	onRelease := func(edit func(*shipper.Release)) func(*lineCase, *user) error {
		return func(s *lineCase, u *user) error {
			rel := s.r.rel.DeepCopy()
			edit(rel)
			return u.Update(s.Context(), rel, client.DryRunAll)
		}
	}
	moves := func(note string) func(*lineCase, *user) error {
		return func(s *lineCase, _ *user) error {
			return onRelease(func(rel *shipper.Release) {
				rel.Spec.TargetStep, rel.Annotations[shipper.ReleaseMovedAnnotation] = 1, note
			})(s, as(s.T, "skipper"))
		}
	}
	for sentence, tc := range map[string]struct {
		try     func(*lineCase, *user) error
		stamper bool // whether a user who may stamp is admitted
	}{
		"the generation of an Application": {annotated(shipper.AppHighestObservedGenerationAnnotation), true},
		"the resolved version":             {annotated(shipper.AppChartVersionResolvedAnnotation), true},
		"the resolved chart":               {annotated(shipper.AppChartNameAnnotation), true},
		"the resolved repository":          {annotated(shipper.AppChartRepoAnnotation), true},
		"who asked":                        {annotated(shipper.AppRequestedByAnnotation), true},
		"credentials that the user may not get": {updating(func(app *shipper.Application) {
			app.Spec.Template.Chart.Credentials.SecretName = "opener"
		}), true},
		"keys that the user may not get": {updating(func(app *shipper.Application) {
			app.Spec.Template.Chart.Verify.SecretName = "keys"
		}), true},
		"a Secret with values that the user may not get": {updating(func(app *shipper.Application) {
			app.Spec.Template.ValuesFrom = []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}}
		}), true},
		"the finalizer of an Application": {updating(func(app *shipper.Application) { app.Finalizers = nil }), true},
		"the generation of a Release": {onRelease(func(rel *shipper.Release) {
			rel.Annotations[shipper.ReleaseGenerationAnnotation] = "7"
		}), true},
		"an environment that failed": {annotated(shipper.AppFailedAnnotation), true},
		"who moved a Release": {onRelease(func(rel *shipper.Release) {
			rel.Annotations[shipper.ReleaseMovedAnnotation] = `{"by":"dev","from":0,"to":1,"count":1}`
		}), true},
		"who moved a Release, hidden behind the user who did": {
			moves(`{"by":"skipper","time":"","by":"ann","a":"aa","from":0,"to":1,"count":1}`), false,
		},
		"how often a Release was moved": {moves(`{"by":"skipper","time":"2026-11-25T10:00:00Z","from":0,"to":1,"count":0}`), false},
		"who holds a Release": {onRelease(func(rel *shipper.Release) {
			rel.Spec.Hold, rel.Annotations[shipper.ReleaseHeldByAnnotation] = "lunch", "ann"
		}), true},
		"a gate that is not passed": {onRelease(func(rel *shipper.Release) { rel.Spec.TargetStep = 1 }), false},
		"a gate that is not passed, for Shipper": {func(s *lineCase, _ *user) error {
			rel := s.r.rel.DeepCopy()
			rel.Spec.TargetStep = 1
			rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(s.r.rel, rel, reconcilerUser, "StepDue", metav1.Now())
			return as(s.T, reconcilerUser).Update(s.Context(), rel, client.DryRunAll)
		}, false},
		"a gate that is not passed, for Shipper without a reason": {func(s *lineCase, _ *user) error {
			rel := s.r.rel.DeepCopy()
			rel.Spec.TargetStep = 1
			return as(s.T, reconcilerUser).Update(s.Context(), rel, client.DryRunAll)
		}, false},
		"the gates of a Release": {onRelease(func(rel *shipper.Release) {
			rel.Spec.Environment.Strategy.Steps[0].Gate = nil
		}), true},
		"a claim of a run with a key twice": {func(s *lineCase, _ *user) error {
			claim := fmt.Sprintf(`{"namespace":%q,"namespace":"other","run":"r","uid":"u"}`, s.ns)
			return updating(ask.Annotated(shipper.AppRunAnnotation, claim))(s, as(s.T, "system:serviceaccount:"+s.ns+":robot"))
		}, false},
		"the Application of a Release": {onRelease(func(rel *shipper.Release) { rel.Labels[shipper.AppLabel] = "other" }), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			at := *s
			at.T = t
			env.Eventually(t, "the refusal", func(context.Context) error { // the API server reads configurations by a watch
				if err := tc.try(&at, as(t, "dev")); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
					return fmt.Errorf("not refused: %w", errors.Join(err, errors.New("waiting")))
				}
				return nil
			})
			if err := tc.try(&at, as(t, "stamper")); (err == nil) != tc.stamper {
				t.Errorf("with the right to stamp: %v", err)
			}
		})
	}
	t.Run("what users do to a Release", func(t *testing.T) {
		at := *s
		at.T = t
		env.Eventually(t, "a gate that is passed with the verb skip", func(context.Context) error {
			return onRelease(func(rel *shipper.Release) { rel.Spec.TargetStep = 1 })(&at, as(t, "skipper"))
		})
		for name, edit := range map[string]func(*shipper.Release){
			"dev": func(rel *shipper.Release) {
				rel.Spec.Hold, rel.Annotations[shipper.ReleaseHeldByAnnotation] = "lunch", "dev"
			},
			"skipper": func(rel *shipper.Release) {
				rel.Spec.TargetStep = 1
				rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(s.r.rel, rel, "skipper", "", metav1.Now())
			},
			reconcilerUser: func(rel *shipper.Release) { // an abort brings it back
				rel.Spec.TargetStep = 1
				rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(s.r.rel, rel, reconcilerUser, progress.NewerAborted, metav1.Now())
			},
		} {
			if err := onRelease(edit)(&at, as(t, name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("Approvals", func(t *testing.T) {
		approves := func(user, name string) error {
			return as(t, user).Create(t.Context(), &shipper.Approval{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, GenerateName: "a-"},
				Spec:       shipper.ApprovalSpec{Release: s.r.rel.Name, Step: new(int32), By: shipper.ApprovalUser{Username: name}},
			}, client.DryRunAll)
		}
		env.Eventually(t, "one by who may", func(context.Context) error { return approves("approver", "approver") })
		of := &shipper.Approval{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "of-another-content"},
			Spec: shipper.ApprovalSpec{
				Release: s.r.rel.Name, Step: new(int32), By: shipper.ApprovalUser{Username: "approver"}, Subject: "what ann has seen",
			},
		}
		checkRefused(t, as(t, "approver").Create(t.Context(), of, client.DryRunAll), refused{422, "spec.subject and spec.time are not read"})
		for user, name := range map[string]string{"dev": "dev", "approver": "ann"} {
			if err := approves(user, name); !apierrors.IsForbidden(err) {
				t.Errorf("one by %s in the name of %s: %v", user, name, err)
			}
		}
		refusal := &shipper.Approval{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "refusal"},
			Spec: shipper.ApprovalSpec{
				Release: s.r.rel.Name, Step: new(int32), Decision: shipper.DecisionReject, By: shipper.ApprovalUser{Username: "approver"},
			},
		}
		if err := as(t, "approver").Create(t.Context(), refusal); err != nil {
			t.Fatal(err)
		}
		for name, may := range map[string]bool{"dev": false, "skipper": true, "approver": true} {
			if err := as(t, name).Delete(t.Context(), refusal, client.DryRunAll); apierrors.IsForbidden(err) == may || may && err != nil {
				t.Errorf("deleted by %s: %v", name, err)
			}
		}
	})
	t.Run("Secrets of Checks and Notifications", func(t *testing.T) { checkAuthors(t, s.ns) })
	t.Run("a Release that another Application owns", func(t *testing.T) { collectorIsRefused(t, s) })
	t.Run("an annotation of the user's own", func(t *testing.T) {
		at := *s
		at.T = t
		if err := updating(ask.Annotated("note", "x"))(&at, as(t, "dev")); err != nil {
			t.Error(err)
		}
	})
}

// collectorIsRefused has the garbage collector delete, under a block, a Release whose owner is not the Application in its
// label.
func collectorIsRefused(t *testing.T, s *lineCase) {
	t.Helper()
	decoy := application(s.ns, s.charts, func(app *shipper.Application) { app.Name = "decoy" })
	create(t, admin, decoy)
	rel := copyOf(s.r.rel).(*shipper.Release)
	rel.Name, rel.UID, rel.ResourceVersion = rel.Name+"0", "", ""
	rel.OwnerReferences[0].Name, rel.OwnerReferences[0].UID = decoy.Name, decoy.UID
	create(t, admin, rel)
	at := *s
	at.T = t
	t.Cleanup(func() { // the API server learns of the deletion by a watch
		env.Eventually(t, "the end of the block", func(ctx context.Context) error { return admin.Delete(ctx, rel, client.DryRunAll) })
	})
	at.stop(s.ns, nil)
	checkRefused(t, as(t, collector).Delete(t.Context(), rel, client.DryRunAll), refused{403, "rollouts blocked by"})
	if err := deletingRelease(&at, as(t, collector)); err != nil {
		t.Errorf("a Release of its own Application: %v", err)
	}
}

// mayStamp returns nil if RBAC lets a user stamp Applications and Releases of a namespace.
func mayStamp(ctx context.Context, name, namespace string) error {
	for _, resource := range []string{"applications", "releases"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: shipper.GroupName, Version: shipper.GroupVersion.Version, Resource: resource, Verb: "stamp", Namespace: namespace,
			},
		}}
		if err := admin.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New(resource + ": " + review.Status.Reason)
		}
	}
	return nil
}
