// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// lineCase is the environment of the cases: both webhook and policy run through them.
type lineCase struct {
	*testing.T
	ns, elsewhere string
	r             rolledOut
	// content is an Application with resources.
	content rolledOut
	charts  *repository
}

// tried is a dry run of a user's request.
type tried func(s *lineCase) error

// byUser makes the request as a user.
func byUser(name string, try func(s *lineCase, u *user) error) tried {
	return func(s *lineCase) error { return try(s, as(s.T, name)) }
}

func creating(edits ...func(*shipper.Application)) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		app := application(s.ns, s.charts, edits...)
		app.Name = "another"
		return u.Create(s.Context(), app, client.DryRunAll)
	}
}

func updating(edits ...func(*shipper.Application)) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		app := s.r.app.DeepCopy()
		for _, edit := range edits {
			edit(app)
		}
		return u.Update(s.Context(), app, client.DryRunAll)
	}
}

// owned adds an owner to an Application that a tenant may delete.
func owned(app *shipper.Application) {
	app.OwnerReferences = append(app.OwnerReferences, metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "f2b3c1de-0000-4000-8000-000000000001",
	})
}

// owning changes the owners of a Release.
func owning(edit func([]metav1.OwnerReference) []metav1.OwnerReference) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		rel := s.r.rel.DeepCopy()
		rel.OwnerReferences = edit(rel.OwnerReferences)
		return u.Update(s.Context(), rel, client.DryRunAll)
	}
}

// ownedToo adds an owner; renamed changes the name of the owner, which the garbage collector looks up, invented its uid.
func ownedToo(refs []metav1.OwnerReference) []metav1.OwnerReference {
	app := &shipper.Application{}
	owned(app)
	return append(refs, app.OwnerReferences...)
}

func renamed(refs []metav1.OwnerReference) []metav1.OwnerReference {
	refs[0].Name = "nowhere"
	return refs
}

func invented(refs []metav1.OwnerReference) []metav1.OwnerReference {
	refs[0].UID = "f2b3c1de-0000-4000-8000-000000000002"
	return refs
}

func moving(step int32) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		rel := s.r.rel.DeepCopy()
		rel.Spec.TargetStep = step
		return u.Update(s.Context(), rel, client.DryRunAll)
	}
}

// settingHold sets, or with an empty reason ends, the hold of the Release.
func settingHold(reason string) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		rel := s.r.rel.DeepCopy()
		rel.Spec.Hold = reason
		return u.Update(s.Context(), rel, client.DryRunAll)
	}
}

// asking gives an annotation of the Release a new value.
func asking(key string) func(*lineCase, *user) error {
	return func(s *lineCase, u *user) error {
		rel := s.r.rel.DeepCopy()
		ask.ReleaseAnnotated(key, "7")(rel)
		return u.Update(s.Context(), rel, client.DryRunAll)
	}
}

func deletingApplication(s *lineCase, u *user) error {
	return u.Delete(s.Context(), s.r.app.DeepCopy(), client.DryRunAll)
}

func deletingRelease(s *lineCase, u *user) error {
	return u.Delete(s.Context(), s.r.rel.DeepCopy(), client.DryRunAll)
}

func scaling(s *lineCase, u *user) error {
	ct := s.r.capacity.DeepCopy()
	ct.Spec.Clusters[0].Percent = 100
	return u.Update(s.Context(), ct, client.DryRunAll)
}

// overridingIt sets the override annotation to the block of the case.
func overridingIt(s func() string) func(*shipper.Application) {
	return func(app *shipper.Application) { ask.Annotated(shipper.RolloutBlockOverrideAnnotation, s())(app) }
}

const (
	blockName = "the-block"
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// inRegion and ofChart are scopes.
func inRegion(name string) func(*shipper.RolloutBlock) {
	return scoped(shipper.RolloutBlockScope{Regions: []string{name}})
}

func ofChart(names ...string) func(*shipper.RolloutBlock) {
	return scoped(shipper.RolloutBlockScope{Charts: names})
}

// farAway requests some clusters of the region far, too.
func farAway(clusters int32) func(*shipper.Application) {
	return func(app *shipper.Application) {
		r := &app.Spec.Template.ClusterRequirements
		r.Regions = append(r.Regions, shipper.RegionRequirement{Name: "far", Replicas: &clusters})
	}
}

// local, global and foreign return the namespace of a case's block.
func local(s *lineCase) string   { return s.ns }
func global(*lineCase) string    { return shipper.GlobalBlocksNamespace }
func foreign(s *lineCase) string { return s.elsewhere }

func scoped(scope shipper.RolloutBlockScope) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) { b.Spec.Scope = &scope }
}

func labelled(selector metav1.LabelSelector) func(*shipper.RolloutBlock) {
	return scoped(shipper.RolloutBlockScope{Applications: &selector})
}

func allowing(changes ...shipper.RolloutBlockChange) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) { b.Spec.Allow = changes }
}

func enforced(e shipper.RolloutBlockEnforcement) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) { b.Spec.Enforcement = e }
}

func policy(p shipper.RolloutBlockOverridePolicy) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) { b.Spec.OverridePolicy = p }
}

// timed schedules the block's start: hours from now, or before now if negative.
func timed(hours time.Duration) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) {
		b.Spec.Schedule = &shipper.RolloutBlockSchedule{Start: &metav1.Time{Time: time.Now().Add(hours * time.Hour)}}
		b.Status.Active = ptr.To(hours < 0)
	}
}

// line says which lines refuse a request: both, only the first, which checks more, or none.
type line string

const (
	both  line = "both"
	first line = "first"
	none  line = "none"
)

// theLines is the table of cases that webhook and policy run through.
func theLines(s *lineCase) map[string]struct {
	where   func(*lineCase) string
	block   func(*shipper.RolloutBlock)
	try     tried
	refused line
} {
	key := func() string { return s.ns + "/" + blockName }
	override := overridingIt(key)
	note := ask.Annotated("note", "x")
	tier := func(value string) func(*shipper.Application) {
		return func(app *shipper.Application) { app.Labels = map[string]string{"tier": value} }
	}
	gold := metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	notGold := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"gold"}},
	}}
	someTier := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpExists},
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"gold", "silver"}},
	}}
	ofShipper := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: shipper.AppLabel, Operator: metav1.LabelSelectorOpExists},
	}}
	notOfShipper := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: shipper.ReleaseLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
		{Key: shipper.AppLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.r.app.Name}},
	}}
	conditional := func(b *shipper.RolloutBlock) {
		b.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{
			{Name: "dev", Expression: `request.userInfo.username == "dev"`},
		}
	}
	reasoned := func(b *shipper.RolloutBlock) { b.Spec.RequireOverrideReason = true }
	return map[string]struct {
		where   func(*lineCase) string
		block   func(*shipper.RolloutBlock)
		try     tried
		refused line
	}{
		"an Application is created":                      {local, nil, byUser("dev", creating()), both},
		"it is created under a global block":             {global, nil, byUser("dev", creating()), both},
		"it is created beside another namespace's block": {foreign, nil, byUser("dev", creating()), none},
		"it is created with an override by who may":      {local, nil, byUser("sre", creating(override)), none},
		"it is created with an override by who may not":  {local, nil, byUser("dev", creating(override)), both},
		"it is updated": {local, nil, byUser("dev", updating(replicas(9))), both},
		"it is updated with an override by who may":          {local, nil, byUser("sre", updating(replicas(9), override)), none},
		"its metadata is updated":                            {local, nil, byUser("dev", updating(note)), none},
		"who may not override adds an override only":         {local, nil, byUser("dev", updating(override)), both},
		"who may override adds an override only":             {local, nil, byUser("sre", updating(override)), none},
		"it is deleted":                                      {local, nil, byUser("dev", deletingApplication), both},
		"a Release is moved":                                 {local, nil, byUser("dev", moving(2)), both},
		"a Release is held for another reason":               {local, nil, byUser("dev", settingHold("dinner")), none},
		"a Release is held no more":                          {local, nil, byUser("dev", settingHold("")), both},
		"a Release's hooks are run again":                    {local, nil, byUser("dev", asking(shipper.ReleaseHooksRetryAnnotation)), both},
		"a Release's tests are run":                          {local, nil, byUser("dev", asking(shipper.ReleaseTestAnnotation)), both},
		"a Release's checks are made again":                  {local, nil, byUser("dev", asking(shipper.ReleaseChecksRetryAnnotation)), both},
		"a Release is deleted":                               {local, nil, byUser("dev", deletingRelease), both},
		"the garbage collector deletes a Release with owner": {local, nil, byUser(collector, deletingRelease), first},
		"a target is edited by hand":                         {local, nil, byUser("dev", scaling), first},
		"the reconciler moves a target":                      {local, nil, byUser(reconcilerUser, scaling), first},

		"an Application gets an owner":                              {local, nil, byUser("dev", updating(owned)), both},
		"an Application gets an owner, with an override by who may": {local, nil, byUser("sre", updating(owned, override)), none},
		"the garbage collector deletes an Application":              {local, nil, byUser(collector, deletingApplication), both},
		"a Release gets another owner":                              {local, nil, byUser("dev", owning(ownedToo)), both},
		"a Release gets an owner that is not there":                 {local, nil, byUser("dev", owning(renamed)), both},
		"a Release gets its Application with another uid":           {local, nil, byUser("dev", owning(invented)), both},

		"a block that only warns":             {local, enforced(shipper.RolloutBlockWarn), byUser("dev", creating()), none},
		"a block that only notes":             {local, enforced(shipper.RolloutBlockAudit), byUser("dev", creating()), none},
		"a block that is to come":             {local, timed(1), byUser("dev", creating()), none},
		"a block that has come":               {local, timed(-1), byUser("dev", creating()), both},
		"a block with policy Anyone":          {local, policy(shipper.RolloutBlockAnyone), byUser("dev", creating(override)), none},
		"a block with policy Nobody":          {local, policy(shipper.RolloutBlockNobody), byUser("sre", creating(override)), both},
		"a block that wants a reason":         {local, reasoned, byUser("sre", creating(override)), first},
		"a block with a condition that holds": {local, conditional, byUser("dev", creating()), first},
		"a block with another condition":      {local, conditional, byUser("ann", creating()), none},

		"a label in scope":                 {local, labelled(gold), byUser("dev", creating(tier("gold"))), both},
		"another label":                    {local, labelled(gold), byUser("dev", creating(tier("silver"))), none},
		"no label":                         {local, labelled(gold), byUser("dev", creating()), none},
		"a label that is out of scope":     {local, labelled(notGold), byUser("dev", creating(tier("gold"))), none},
		"no label, which is in scope":      {local, labelled(notGold), byUser("dev", creating()), both},
		"one of several labels":            {local, labelled(someTier), byUser("dev", creating(tier("silver"))), both},
		"none of several labels":           {local, labelled(someTier), byUser("dev", creating(tier("bronze"))), none},
		"Shipper's own label of a Release": {local, labelled(ofShipper), byUser("dev", moving(2)), none},
		"a Release without that label":     {local, labelled(notOfShipper), byUser("dev", moving(2)), both},
		"a chart in scope":                 {local, ofChart("x", "nginx"), byUser("dev", moving(2)), both},
		"another chart":                    {local, ofChart("x"), byUser("dev", moving(2)), none},
		"a region in scope":                {local, inRegion("local"), byUser("dev", creating()), both},
		"another region":                   {local, inRegion("far"), byUser("dev", creating()), none},
		"a region that is wanted too":      {local, inRegion("far"), byUser("dev", creating(farAway(1))), both},
		"a region of which none is wanted": {local, inRegion("far"), byUser("dev", creating(farAway(0))), none},
		"a cluster that is not known yet": {
			local, scoped(shipper.RolloutBlockScope{Clusters: []string{"far"}}), byUser("dev", moving(2)), first,
		},

		"a retreat where that is allowed":  {local, allowing(shipper.RolloutBlockRetreat), byUser("dev", moving(0)), none},
		"an advance where retreats are":    {local, allowing(shipper.RolloutBlockRetreat), byUser("dev", moving(2)), both},
		"a retreat where aborts are":       {local, allowing(shipper.RolloutBlockAbort), byUser("dev", moving(0)), both},
		"an edit where aborts are allowed": {local, allowing(shipper.RolloutBlockAbort), byUser("dev", updating(replicas(9))), both},
		"what is no rollback where that is allowed": {
			local, allowing(shipper.RolloutBlockRollback), byUser("dev", updating(replicas(9))), first,
		},
		"other content is placed": {local, nil, byUser(reconcilerUser, placingContent), both},
		"other content is placed where aborts are allowed": {
			local, allowing(shipper.RolloutBlockAbort), byUser(reconcilerUser, placingContent), both,
		},
		"other content is placed where rollbacks are": {
			local, allowing(shipper.RolloutBlockRollback), byUser(reconcilerUser, placingContent), first,
		},
		"other content is placed beside a block of a region": {local, inRegion("far"), byUser(reconcilerUser, placingContent), none},
	}
}

func TestBothLinesAgree(t *testing.T) {
	s := &lineCase{T: t, ns: namespace(t), elsewhere: namespace(t), charts: startRepository(t, "0.0.1", "0.0.2")}
	grant(t, "sre", "override", "rolloutblocks")
	s.r = rollOut(t, s.ns, func(app *shipper.Application) {
		steps := app.Spec.Template.Strategy.Steps
		app.Spec.Template.Strategy.Steps = append(steps[:len(steps)-1:len(steps)-1], steps[0], steps[len(steps)-1])
	})
	s.content = placeContent(t, s.ns)
	s.r.rel.Spec.TargetStep, s.r.rel.Spec.Hold = 1, "lunch"
	if err := as(t, "dev").Update(t.Context(), s.r.rel); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error {
		return mayOverride(ctx, "sre")
	})
	for _, l := range []struct {
		name    string
		arrange func(*testing.T)
		refuses map[line]bool
	}{
		{"the webhooks alone", withoutPolicies, map[line]bool{both: true, first: true}},
		{"the policy alone", withoutWebhooks, map[line]bool{both: true}},
	} {
		t.Run(l.name, func(t *testing.T) {
			l.arrange(t)
			for sentence, tc := range theLines(s) {
				t.Run(sentence, func(t *testing.T) {
					at := *s
					at.T = t
					at.stop(tc.where(s), tc.block)
					err := tc.try(&at)
					if refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err); refused != l.refuses[tc.refused] {
						t.Errorf("refused %t: %v", refused, err)
					}
					if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
						t.Errorf("not judged: %v", err)
					}
				})
			}
		})
	}
}

// stop creates the block of a case and returns when both lines enforce it: when they enforce a block that was created later.
func (s *lineCase) stop(where string, edit func(*shipper.RolloutBlock)) {
	s.Helper()
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: blockName}, Spec: ask.Block("x/y").Spec}
	if edit != nil {
		edit(b)
	}
	status := b.Status
	create(s.T, admin, b)
	if b.Status = status; status.Active != nil {
		if err := admin.Status().Update(s.Context(), b); err != nil {
			s.Fatal(err)
		}
	}
	later := namespace(s.T)
	marker := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: later, Name: "marker"}, Spec: ask.Block("x/y").Spec}
	create(s.T, admin, marker)
	env.Eventually(s.T, "the block to be known", func(ctx context.Context) error { return stopped(ctx, later, s.charts) })
}

// stopped returns nil if a new Application in a namespace is refused.
func stopped(ctx context.Context, namespace string, charts *repository) error {
	err := admin.Create(ctx, application(namespace, charts), client.DryRunAll)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("not stopped: %w", errors.Join(err, errors.New("waiting")))
}

// withoutWebhooks deletes the webhook configurations until the test ends, and waits until the API server calls no webhook.
func withoutWebhooks(t *testing.T) {
	t.Helper()
	away := []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: shipper.GroupName}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: shipper.GroupName}},
	}
	takeAway(t, away...)
	ns := namespace(t)
	env.Eventually(t, "the webhooks to be forgotten", func(ctx context.Context) error {
		app := ask.Application(func(a *shipper.Application) { a.Namespace, a.UID = ns, "" })
		app.Spec.Template.Chart.Version = "not a version" // the schema allows it, the webhook does not
		return admin.Create(ctx, app, client.DryRunAll)
	})
}

// withoutPolicies deletes the policy's bindings until the test ends. It does not wait until the API server has noticed, which
// cannot be seen while the API server calls the webhooks.
func withoutPolicies(t *testing.T) {
	t.Helper()
	takeAway(t,
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "blocks." + shipper.GroupName}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "global-blocks." + shipper.GroupName}})
}

// takeAway deletes objects and creates them again after the test.
func takeAway(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			o.SetResourceVersion("")
			o.SetUID("")
			if err := admin.Create(context.Background(), o); err != nil {
				t.Error(err)
			}
			awaitGate(t)
		})
	}
}

// awaitGate waits until the API server calls the webhook again.
func awaitGate(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
	defer cancel()
	err := env.Until(ctx, "the API server to call the webhook again", func(ctx context.Context) error {
		app := ask.Application(func(a *shipper.Application) { a.Namespace, a.UID = "default", "" })
		app.Spec.Template.Chart.Version = "not a version"
		if err := admin.Create(ctx, app, client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.Join(errors.New("what is invalid is not refused as such"), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// mayOverride returns nil if a user may override blocks.
func mayOverride(ctx context.Context, name string) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: shipper.GroupName, Version: shipper.GroupVersion.Version, Resource: "rolloutblocks", Verb: "override",
		},
	}}
	if err := admin.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return errors.New(review.Status.Reason)
	}
	return nil
}
