// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strconv"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// twice is an Application that was rolled out twice after running, by steps.
func twice(t *testing.T) *rolloutFixture {
	t.Helper()
	s := running(t)
	for n := range int64(2) {
		s.edit(n+1, vanguard)
		s.until(serving+" | "+staging, func() string { return strings.TrimPrefix(s.shares(), strings.Repeat(done+" | ", int(n))) })
		s.goTo(2)
		s.until(strings.Repeat(done+" | ", int(n)+1)+serving, s.shares)
	}
	return s
}

// rollBack makes the template what the webhook makes it when a user rolls back to the i-th Release, whose edit was the i-th.
func (s *rolloutFixture) rollBack(i int, how shipper.RollbackStrategy) (to string) {
	s.t.Helper()
	to = s.releases()[i]
	s.apply(func(app *shipper.Application) {
		app.Spec.Template = s.template(int64(i), vanguard)
		if app.Annotations == nil {
			app.Annotations = map[string]string{}
		}
		app.Annotations[shipper.AppRolledBackToAnnotation] = to
		app.Annotations[shipper.AppRollbackStrategyAnnotation] = string(how)
	})
	return to
}

func TestARollbackGoesThroughItsStepsOrToTheLast(t *testing.T) {
	t.Parallel()
	s := twice(t)
	first := s.rollBack(1, shipper.RollbackSteps)
	s.until(done+" | "+done+" | "+serving+" | "+staging, s.shares)
	s.goTo(2)
	s.until(done+" | "+done+" | "+done+" | "+serving, s.shares)
	back := s.releases()[3]
	s.until(`True Release "`+back+`" has the environment of "`+first+`"`, s.appCondition(shipper.ApplicationRolledBack))
	s.untilEvent("web", "ApplicationConditionChanged", `[RolledBack True Release "`+back+`" has the environment of "`+first+`"]`)

	second := s.rollBack(2, shipper.RollbackImmediate) // which goes back from a rollback
	s.until(done+" | "+done+" | "+done+" | "+done+" | "+serving, s.shares)
	s.until(`True Release "`+s.releases()[4]+`" has the environment of "`+second+`"`, s.appCondition(shipper.ApplicationRolledBack))
	s.until("RolledBack Complete", func() string {
		var out []string
		for _, i := range []int{3, 4} {
			if sum := s.release(i).Status.Summary; sum != nil {
				out = append(out, string(sum.Outcome))
			}
		}
		return strings.Join(out, " ")
	})
}

func TestARollbackDuringARollbackTakesItsPlace(t *testing.T) {
	t.Parallel()
	s := twice(t)
	s.rollBack(1, shipper.RollbackSteps)
	s.until(done+" | "+done+" | "+serving+" | "+staging, s.shares)
	s.goTo(1)
	s.until(done+" | "+done+" | "+halfLeft+" | "+halfDone, s.shares)
	left := s.releases()[3]
	s.rollBack(2, shipper.RollbackSteps)
	s.until(done+" | "+done+" | "+serving+" | "+staging, func() string {
		if names := s.releases(); names[len(names)-1] == left {
			return "not yet"
		}
		return s.shares()
	})
	s.until("4", func() string { return strconv.Itoa(len(s.releases())) })
	for _, name := range s.releases() {
		if name == left {
			t.Errorf("%s is still there", name)
		}
	}
	s.goTo(2)
	s.until(done+" | "+done+" | "+done+" | "+serving, s.shares)
}

func TestARollbackWhileAClusterIsDownWaitsForIt(t *testing.T) {
	t.Parallel()
	s := twice(t)
	b := s.namespace + "-b"
	rolloutTargets.setDown(t, true, s.namespace, b)
	s.rollBack(1, shipper.RollbackImmediate)
	s.until("4", func() string { return strconv.Itoa(len(s.releases())) })
	s.until("2", func() string { return strconv.Itoa(int(s.release(3).Spec.TargetStep)) })
	s.until("told", func() string {
		said := condition(s.release(3).Status.Conditions, shipper.ReleaseStrategyExecuted)
		if strings.Contains(said, "clusters pending installation: ") && strings.Contains(said, b) {
			return "told"
		}
		return said
	})
	s.until(serving, func() string { return strings.Split(s.shares(), " | ")[2] }) // nothing is taken from what serves
	rolloutTargets.setDown(t, false, s.namespace, b)
	s.until(done+" | "+done+" | "+done+" | "+serving, s.shares)
}
