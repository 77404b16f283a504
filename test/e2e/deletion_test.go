// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// slowPods makes the Pods of a template ready only after four seconds.
func slowPods(app *shipper.Application) *shipper.Application {
	(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "slow"}
	return app
}

// slowPair has two Releases whose Pods start slowly: the first completed, the second at step 0.
func (s *fixture) slowPair(replicas int) (incumbent, contender string) {
	s.Helper()
	s.applies(slowPods(s.application("0.0.1", replicas, allIn)))
	incumbent = s.Release(0)
	s.Completes(incumbent)
	next := slowPods(s.application("0.0.2", replicas, vanguard))
	s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	contender = s.Release(1)
	s.WaitsForCommand(contender, 0)
	return incumbent, contender
}

// deletesRelease deletes a Release that may serve, with the confirming annotation.
func (s *fixture) deletesRelease(release string, how ...client.DeleteOption) {
	s.Helper()
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: release}}
	confirm := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, shipper.ConfirmDeletionAnnotation, release)
	s.Must("confirming the deletion of "+release, s.User.Patch(s.Ctx, rel, client.RawPatch("application/merge-patch+json", confirm)))
	s.Must("deleting "+release, s.User.Delete(s.Ctx, rel, how...))
}

// goes waits until a Release is gone.
func (s *fixture) goes(release string) {
	s.Helper()
	s.Eventually(release, "gone", func() (string, error) {
		rel, err := s.Get(release)
		if apierrors.IsNotFound(err) {
			return "gone", nil
		}
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
		if c == nil {
			return "there", err
		}
		return c.Message, err
	})
}

func TestDeletionRemovesNothingThatServes(t *testing.T) {
	t.Parallel()
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	for name, tc := range map[string]struct {
		until func(s *fixture, incumbent, contender string)
		how   []client.DeleteOption
	}{
		"at 50/50": {until: func(s *fixture, _, contender string) {
			s.Steps(contender, 1)
			s.WaitsForCommand(contender, 1)
		}},
		"when the newest Release is complete": {until: func(s *fixture, _, contender string) {
			s.Steps(contender, 2)
			s.Completes(contender)
		}},
		"when dependents are deleted first": {until: func(s *fixture, _, contender string) {
			s.Steps(contender, 2)
			s.Completes(contender)
		}, how: []client.DeleteOption{foreground}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			incumbent, contender := s.slowPair(4)
			tc.until(s, incumbent, contender)
			served := s.serving()
			s.deletesRelease(contender, tc.how...)
			s.goes(contender)
			s.readyPods(contender, 0)
			s.templateIs("0.0.1")
			s.settles(incumbent)
			s.readyPods(incumbent, 4)
			s.endpoints(4)
			if least := served(); least < 4 {
				t.Errorf("a cluster served with %d endpoints while the newest Release was deleted, want 4 at least", least)
			}
			for _, cluster := range s.clusters {
				s.holdsNothingBut(cluster, incumbent)
			}
		})
	}
}

// TestDeletedIncumbentServesUntilTheContenderDoes confirms the deletion of the Release that has all traffic.
func TestDeletedIncumbentServesUntilTheContenderDoes(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := s.slowPair(2)
	served := s.serving()
	err := s.deletionOf(&shipper.Release{}, incumbent)
	want := "Release " + incumbent + " serves 100 % of the traffic in 2 clusters and is not the newest."
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the deletion of the incumbent, not confirmed: %v", err)
	}
	s.deletesRelease(incumbent)
	s.Eventually("what keeps the incumbent", fmt.Sprintf(
		"being deleted; kept in clusters [%s %s] until Release %q is at its step there and has traffic", west, east, contender),
		func() (string, error) {
			rel, err := s.Get(incumbent)
			c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
			if c == nil {
				return "", err
			}
			return c.Message, err
		})
	s.Steps(contender, 2)
	s.Completes(contender)
	s.goes(incumbent)
	s.endpoints(2)
	if least := served(); least < 2 {
		t.Errorf("a cluster served with %d endpoints while the incumbent was deleted, want 2 at least", least)
	}
}

// TestADeletionIsHeldWhileABlockIsInEffect starts deletions before a block, holds them by finalizers of a tenant, and
// releases them during the block, when the API server calls no webhook.
func TestADeletionIsHeldWhileABlockIsInEffect(t *testing.T) {
	t.Parallel()
	const own = "tenant.example.com/armed"
	for name, arm := range map[string]func(s *fixture){
		"of an Application": func(s *fixture) {
			s.Must("deleting the application", s.deletionOf(&shipper.Application{}, appName))
		},
		"of a namespace": func(s *fixture) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
			s.Must("deleting the namespace", world.Management.Delete(s.Ctx, namespace))
			s.Eventually("the application", "being deleted", func() (string, error) {
				app := &shipper.Application{}
				err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
				if app.DeletionTimestamp != nil {
					return "being deleted", err
				}
				return "there", err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
			app := s.application("0.0.1", 2, allIn)
			app.Labels = map[string]string{"story": s.Namespace}
			s.applies(app)
			rel := s.Release(0)
			s.Completes(rel)
			s.endpoints(2)
			s.Edits(func(app *shipper.Application) { app.Finalizers = append(app.Finalizers, own) })
			arm(s)

			block := &shipper.RolloutBlock{
				ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: s.Namespace},
				Spec: shipper.RolloutBlockSpec{
					Message: "freeze", OverridePolicy: shipper.RolloutBlockNobody,
					Scope: &shipper.RolloutBlockScope{Applications: &metav1.LabelSelector{MatchLabels: app.Labels}},
				},
			}
			s.Must("creating the block", world.Management.Create(s.Ctx, block))
			held := "the deletion is held: rollouts blocked by: " + shipper.GlobalBlocksNamespace + "/" + s.Namespace
			blockedIs := func(want string) {
				s.Eventually("the condition Blocked", want, func() (string, error) {
					app := &shipper.Application{}
					err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
					if c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationBlocked); c != nil {
						return c.Message, err
					}
					return "", err
				})
			}
			blockedIs(held)
			s.Must("disarming", s.User.Patch(s.Ctx, &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: appName}},
				client.RawPatch("application/json-patch+json", fmt.Appendf(nil, `[{"op":"replace","path":"/metadata/finalizers","value":[%q]}]`,
					shipper.RolloutFinalizer))))
			s.Must("looking again", s.looksAgain(held))
			s.endpoints(2)
			s.readyPods(rel, 2)

			s.Must("lifting the block", world.Management.Delete(s.Ctx, block))
			s.Eventually("the application", "gone", func() (string, error) {
				err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, &shipper.Application{})
				if apierrors.IsNotFound(err) {
					return "gone", nil
				}
				return "there", err
			})
			for _, cluster := range s.clusters {
				s.holdsNothingBut(cluster)
			}
		})
	}
}

// looksAgain adds a block and waits until the Application reports it, so that the reconciler has handled the deletion. It
// removes the block again.
func (s *fixture) looksAgain(held string) error {
	block := &shipper.RolloutBlock{}
	key := client.ObjectKey{Namespace: shipper.GlobalBlocksNamespace, Name: s.Namespace}
	if err := world.Management.Get(s.Ctx, key, block); err != nil {
		return err
	}
	other := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: s.Namespace + "-2"}, Spec: block.Spec}
	if err := world.Management.Create(s.Ctx, other); err != nil {
		return err
	}
	s.Eventually("the condition Blocked", held+","+other.Namespace+"/"+other.Name, func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app)
		if c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationBlocked); c != nil {
			return c.Message, err
		}
		return "", err
	})
	return world.Management.Delete(s.Ctx, other)
}
