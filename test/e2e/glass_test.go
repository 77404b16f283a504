// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// why is the reason given for the override.
const why = "INC-4711: this version mends the outage"

// TestBreakingTheGlass overrides a block for a whole rollout. The override's user, time, reason and block stay on record.
func TestBreakingTheGlass(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 4, allIn))
		incumbent := s.Release(0)
		s.Completes(incumbent)
		rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) { spec.RequireOverrideReason = true })
		key := rb.Namespace + "/" + rb.Name
		dev, _ := s.as("dev")
		sre, _ := s.as("sre", mayOverride(rb.Name))
		rollOut := func(reason string) func(*shipper.Application) {
			return func(app *shipper.Application) {
				app.Spec.Template = s.application("0.0.2", 4, vanguard).Spec.Template
				app.Annotations[shipper.RolloutBlockOverrideAnnotation] = key
				app.Annotations[shipper.RolloutBlockOverrideReasonAnnotation] = reason
			}
		}
		s.forbidden("overriding without the right", dev.TryEdit(rollOut(why)), `user "dev" may not override RolloutBlock `+key,
			"the verb override on resource rolloutblocks."+shipper.GroupName+" named "+rb.Name+" in namespace "+rb.Namespace)
		err := sre.TryEdit(rollOut(" "))
		s.refused("overriding without a reason", err, shipper.RolloutBlockOverrideReasonAnnotation, "wants to know why")
		if !apierrors.IsInvalid(err) {
			t.Errorf("overriding without a reason is refused with %s, want 422", apierrors.ReasonForError(err))
		}
		began := time.Now()
		sre.Edits(rollOut(why))
		contender := s.Release(1)
		s.WaitsForCommand(contender, 0)
		dev.Steps(contender, 1) // the Application has the override: advancing it needs no right to override
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		dev.Steps(contender, 2)
		s.Completes(contender)
		s.readyPods(contender, 4)
		s.readyPods(incumbent, 0)
		s.endpoints(4)

		app, rel := &shipper.Application{}, &shipper.Release{}
		s.Must("reading the application", world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app))
		s.Must("reading the release", world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: contender}, rel))
		s.bears(app, rb, "sre", began)
		s.bears(rel, rb, "sre", began)
		s.recorded(rb, app.Name, contender)
		for _, of := range []string{"Application " + s.Namespace + "/" + app.Name, "Release " + s.Namespace + "/" + rel.Name} {
			s.toldOf("RolloutBlock", rb.Name, "RolloutBlockOverridden", "sre overrides the block for "+of+": "+why)
		}
		s.toldOf("Release", contender, "RolloutBlockOverridden", key)
		for _, note := range []struct{ user, key, want string }{
			{"sre", "override", "[patch applications: " + key + "]"},
			{"sre", "override-reason", "[patch applications: " + why + "]"},
			{"sre", "blocks-overridden", "[patch applications: " + key + "]"},
			{"dev", "override", "[]"},
			{"dev", "blocks-overridden", "[patch releases: " + key + " patch releases: " + key + "]"},
		} {
			if got := fmt.Sprint(s.audited(note.user, note.key)); got != note.want {
				t.Errorf("audited of %s under %s: got %s, want %s", note.user, note.key, got, note.want)
			}
		}
	})
}

// bears fails unless an object's annotations record the block, the user, the time and the reason of the override.
func (s *fixture) bears(o client.Object, rb *shipper.RolloutBlock, user string, began time.Time) {
	s.Helper()
	got := block.Records(o.GetAnnotations())
	want := []block.Record{{Block: block.Name(rb).String(), UID: rb.UID, User: user, Reason: why}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(block.Record{}, "Time")); diff != "" {
		s.Fatalf("what %s says of overrides (-want +got):\n%s", o.GetName(), diff)
	}
	if at := got[0].Time.Time; at.Before(began.Truncate(time.Second)) || at.After(time.Now()) {
		s.Errorf("%s says that the block was overridden at %s; it was between %s and now", o.GetName(), at, began)
	}
}

// recorded waits until a block's status lists the overrides of an Application and its Release, with user and reason.
func (s *fixture) recorded(rb *shipper.RolloutBlock, app, release string) {
	s.Helper()
	s.listed(rb.Namespace+"/"+rb.Name, s.Namespace+"/"+app, s.Namespace+"/"+release)
	now := &shipper.RolloutBlock{}
	s.Must("reading the block", world.Management.Get(s.Ctx, client.ObjectKeyFromObject(rb), now))
	want := []shipper.RolloutBlockOverrideRecord{
		{Kind: "Application", Name: s.Namespace + "/" + app, User: "sre", Reason: why},
		{Kind: "Release", Name: s.Namespace + "/" + release, User: "sre", Reason: why},
	}
	got := now.Status.Overrides.Records
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(shipper.RolloutBlockOverrideRecord{}, "Time")); diff != "" {
		s.Errorf("records of the block (-want +got):\n%s", diff)
	}
}

// TestBreakingTheGlassInTheMiddleOfAStep annotates a Release that a block has stopped: its rollout goes on.
func TestBreakingTheGlassInTheMiddleOfAStep(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.stuckHalfway()
		key := s.blocks()
		s.saysBlocked(contender, key)
		asked := s.targets(incumbent)
		s.pulls(contender, 2)
		s.hasCapacity(contender)
		if diff := cmp.Diff(asked, s.targets(incumbent)); diff != "" {
			t.Errorf("targets moved under a block (-before +after):\n%s", diff)
		}
		dev, _ := s.as("dev")
		sre, _ := s.as("sre", mayOverride(blockName))
		s.forbidden("overriding without the right", dev.annotates(contender, key, why), `user "dev" may not override`, key)
		s.Must("overriding", sre.annotates(contender, key, why))
		s.releaseSaysOfBlocks(contender, "False")
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
	})
}

// annotates sets the override annotations of a Release.
func (s *fixture) annotates(release, key, reason string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q}}}`,
		shipper.RolloutBlockOverrideAnnotation, key, shipper.RolloutBlockOverrideReasonAnnotation, reason)
	return s.User.Patch(s.Ctx, &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}},
		client.RawPatch(types.MergePatchType, patch))
}

// TestBlockThatNobodyMayOverride checks that policy Nobody refuses new overrides and ends those made under an earlier policy.
func TestBlockThatNobodyMayOverride(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		rb := s.blocksWith(func(*shipper.RolloutBlockSpec) {})
		key := rb.Namespace + "/" + rb.Name
		sre, _ := s.as("sre", mayOverride(rb.Name))
		app := sre.application("0.0.1", 4, vanguard)
		app.Annotations = map[string]string{shipper.RolloutBlockOverrideAnnotation: key}
		sre.applies(app)
		rel := s.Release(0)
		s.WaitsForCommand(rel, 0)
		s.listed(key, s.Namespace+"/"+s.App, s.Namespace+"/"+rel)

		patch := fmt.Appendf(nil, `{"spec":{"overridePolicy":%q}}`, shipper.RolloutBlockNobody)
		s.Must("forbidding overrides", world.Management.Patch(s.Ctx, rb, client.RawPatch(types.MergePatchType, patch)))
		s.saysBlocked(rel, key)
		s.listed(key, "", "")
		said := []string{"rollouts blocked by: " + key, "Nobody may override " + key}
		for name, who := range map[string]*fixture{"sre": sre, "the administrator": s} {
			s.forbidden(name+" advancing", who.TryStep(rel, 1), said...)
			another := who.application("0.0.1", 1, allIn)
			another.Name, another.Annotations = "another", map[string]string{shipper.RolloutBlockOverrideAnnotation: key}
			s.forbidden(name+" overriding", who.User.Create(s.Ctx, another), said...)
		}
		s.readyPods(rel, 1)
	})
}

// TestLiftingOrWeakeningABlockIsAnEventAndAudited has a user who may change and delete the block, and so needs no override.
func TestLiftingOrWeakeningABlockIsAnEventAndAudited(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west}, []string{westRegion})
	rb := s.blocksWith(func(*shipper.RolloutBlockSpec) {})
	key := rb.Namespace + "/" + rb.Name
	sre, _ := s.as("sre", rbacv1.PolicyRule{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"rolloutblocks"}, Verbs: []string{"patch", "delete"},
	})
	patch := fmt.Appendf(nil, `{"spec":{"enforcement":%q,"allow":[%q]}}`, shipper.RolloutBlockWarn, shipper.RolloutBlockAbort)
	s.Must("weakening the block", sre.User.Patch(s.Ctx, rb, client.RawPatch(types.MergePatchType, patch)))
	s.toldOf("RolloutBlock", rb.Name, "RolloutBlockWeakened",
		"the block of testUser (created by admin) was changed and stops less now: allow, enforcement")
	s.Must("lifting the block", sre.User.Delete(s.Ctx, rb))
	s.toldOf("RolloutBlock", rb.Name, "RolloutBlockLifted",
		"the block of testUser (created by admin) was deleted; the API server's audit log has who did it: Simulate rollout block")
	for under, want := range map[string]string{
		"block-weakened": "[patch rolloutblocks: " + key + ": allow, enforcement]",
		"block-lifted":   "[delete rolloutblocks: " + key + "]",
	} {
		if got := fmt.Sprint(s.audited("sre", under)); got != want {
			t.Errorf("audited under %s: got %s, want %s", under, got, want)
		}
	}
}
