// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestDeletingTheNewestReleaseAborts(t *testing.T) {
	t.Parallel()
	s := running(t)
	before := s.app().Spec.Template
	s.edit(1, vanguard)
	s.until(serving+" | "+staging, s.shares)
	s.goHalfWay()
	s.must(s.Delete(t.Context(), s.release(1)))
	s.until(serving, s.shares)
	s.until("true", func() string {
		app := s.app()
		if stamp.SameEnvironment(&app.Spec.Template, &before) &&
			app.Annotations[shipper.AppHighestObservedGenerationAnnotation] == "0" {
			return "true"
		}
		return "false"
	})
	s.until("False", s.appCondition(shipper.ApplicationAborting))
	s.untilEvent("web", "ApplicationConditionChanged",
		`-> [Aborting True abort in progress, returning state to release "`+s.releases()[0]+`"]`)
	s.until(`False Release "`+s.releases()[0]+`" is active`, s.appCondition(shipper.ApplicationRollingOut))
	if got := s.app().Annotations[shipper.AppChartVersionResolvedAnnotation]; got != "0.0.1" {
		t.Errorf("the template's chart is resolved to %q", got)
	}
	s.until("true", func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(s.release(0)), it))
		return map[bool]string{true: "true"}[it.Spec.CanOverride]
	})
}

func TestDeletingAnOlderReleaseAbortsNothing(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.edit(1, allIn)
	s.until(done+" | "+serving, s.shares)
	s.edit(2, vanguard)
	const before = serving + " | " + staging
	s.until(done+" | "+before, s.shares)
	template := s.app().Spec.Template
	newest := s.release(2).Name
	targets := func() []int64 {
		key := client.ObjectKey{Namespace: s.namespace, Name: newest}
		ct, tt := &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
		s.must(s.Get(t.Context(), key, ct))
		s.must(s.Get(t.Context(), key, tt))
		return []int64{ct.Generation, tt.Generation}
	}
	was := targets()

	s.must(s.Delete(t.Context(), s.release(1))) // the one in the middle, which served: the one before it does now
	s.until("2", func() string { return strconv.Itoa(len(s.releases())) })
	s.until(before, s.shares)
	s.must(s.Delete(t.Context(), s.release(0))) // the oldest
	s.until(staging, s.shares)
	if diff := cmp.Diff(was, targets()); diff != "" {
		t.Errorf("the newest was asked for something else (-before +after):\n%s", diff)
	}
	app := s.app()
	if !stamp.SameEnvironment(&template, &app.Spec.Template) {
		t.Errorf("the template was taken back to %v", *app.Spec.Template.Values)
	}
	if got := app.Annotations[shipper.AppHighestObservedGenerationAnnotation]; got != "2" {
		t.Errorf("the highest observed generation is %q now", got)
	}
	s.until("False", s.appCondition(shipper.ApplicationAborting))
}

func TestAClusterOutOfReachKeepsANameToItself(t *testing.T) {
	t.Parallel()
	s := running(t)
	first := s.release(0)
	release := s.detain(first)
	rolloutTargets.setDown(t, true, s.namespace, s.namespace+"-b")
	s.until("False", func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(first), it))
		return condition(it.Status.Clusters[1].Conditions, shipper.TargetOperational)[:5]
	})
	s.must(s.Delete(t.Context(), first))
	s.until(first.Labels[shipper.ReleaseHashLabel]+" 1", func() string {
		rel := s.release(0)
		return rel.Labels[shipper.ReleaseHashLabel] + " " + rel.Annotations[shipper.ReleaseTemplateIterationAnnotation]
	})
	s.until("True", s.relCondition(0, shipper.ReleaseScheduled))
	s.until("100%/100 0%/0 at -", s.shares)
	rolloutTargets.setDown(t, false, s.namespace, s.namespace+"-b")
	s.until(serving, s.shares)
	release()
}

func TestANameThatAClusterTurnsOutToKeepIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newRollout(t)
	first := s.release(0)
	release := s.detain(first)
	s.must(s.Delete(t.Context(), first))
	s.until("False FailedAPICall waiting for targets of the same name to go: InstallationTarget is being deleted",
		s.relCondition(0, shipper.ReleaseScheduled))
	second := s.release(0)
	rolloutTargets.setDown(t, true, s.namespace, s.namespace+"-b")
	s.until("2", func() string { return strconv.Itoa(len(s.releases())) })
	third := s.release(1)
	if second.Name != first.Name || third.Name != strings.TrimSuffix(first.Name, "0")+"1" {
		t.Errorf("%s was followed by %s and %s", first.Name, second.Name, third.Name)
	}
	s.until("True", s.relCondition(1, shipper.ReleaseScheduled))
	s.until(" at - | 1%/0 0%/0 at -", s.shares)
	release()
	rolloutTargets.setDown(t, false, s.namespace, s.namespace+"-b")
	s.until(staging, s.shares)
}

func TestAnEditAfterTheDeletionIsNotTakenBack(t *testing.T) {
	t.Parallel()
	s := contending(t)
	second := s.release(1)
	b := s.block("so-that-both-are-seen-at-once")
	s.until("True RolloutsBlocked rollouts blocked by: "+s.namespace+"/"+b.Name,
		s.appCondition(shipper.ApplicationBlocked))
	s.must(s.Delete(t.Context(), second))
	s.edit(2, vanguard)
	s.must(s.Delete(t.Context(), b))
	s.until("true", func() string { // until then, the shares are those of the Release that goes
		name := s.release(1).Name
		return strconv.FormatBool(name != "" && name != second.Name)
	})
	s.until(serving+" | "+staging, s.shares)
	app, edit := s.app(), map[string]any{}
	edit["template"], edit["release"] = (*app.Spec.Template.Values)["edit"], (*s.release(1).Spec.Environment.Values)["edit"]
	if diff := cmp.Diff(map[string]any{"template": int64(2), "release": int64(2)}, edit); diff != "" {
		t.Errorf("the edit was taken back (-want +got):\n%s", diff)
	}
}

func TestTheOnlyReleaseComesBackWhenItIsDeletedBeforeItCompletes(t *testing.T) {
	t.Parallel()
	s := newRollout(t)
	first := s.release(0)
	release := s.detain(first)
	s.must(s.Delete(t.Context(), first))
	s.until("False FailedAPICall waiting for targets of the same name to go: InstallationTarget is being deleted",
		s.relCondition(0, shipper.ReleaseScheduled))
	second := s.release(0)
	if second.UID == first.UID || second.Name != first.Name {
		t.Errorf("got %s, want another %s", second.Name, first.Name)
	}
	release()
	s.until(staging, s.shares)
}

func TestTheOnlyReleaseServesUntilItsReplacementDoes(t *testing.T) {
	t.Parallel()
	s := running(t)
	first := s.release(0)
	b := s.namespace + "-b"
	rolloutTargets.setDown(t, true, s.namespace, b)
	s.until("False", func() string {
		var tt shipper.TrafficTarget
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(first), &tt))
		return condition(tt.Status.Clusters[1].Conditions, shipper.TargetOperational)[:5]
	})
	s.must(s.Delete(t.Context(), first))
	s.until(fmt.Sprintf("being deleted; kept in clusters [%s] until Release %q is at its step there and has traffic",
		b, strings.TrimSuffix(first.Name, "0")+"1"), func() string {
		var rel shipper.Release
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(first), &rel))
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted); c != nil {
			return c.Message
		}
		return ""
	})
	rolloutTargets.setDown(t, false, s.namespace, b)
	s.until(serving, s.shares)
	s.until("gone", func() string {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(first), &shipper.Release{}); apierrors.IsNotFound(err) {
			return "gone"
		}
		return "there"
	})
}

func TestASupersededReleaseStaysUntilItsPlaceIsTaken(t *testing.T) {
	t.Parallel()
	s := contending(t)
	s.goHalfWay()
	second := s.release(1).Name
	b := s.namespace + "-b"
	rolloutTargets.setDown(t, true, s.namespace, b)
	s.edit(2, vanguard)
	s.until("3", func() string { return strconv.Itoa(len(s.releases())) })
	third := s.release(2).Name
	s.until(`False StrategyInProgress superseded by Release "`+third+`": kept as it is until Release "`+third+
		`" is at its step`, s.relCondition(1, shipper.ReleaseStrategyExecuted))
	rolloutTargets.setDown(t, false, s.namespace, b)
	s.until(serving+" | "+staging, s.shares)
	for _, name := range s.releases() {
		if name == second {
			t.Errorf("%s is still there", name)
		}
	}
}
