// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/original"
)

// inheritance is a rollout that the original has left in progress.
type inheritance struct {
	original.Rollout

	incumbent, contender string
	witnesses            []*witness
	conditions           *conditionWitness
}

// inherit runs the original in the fleet, leaves two rollouts in progress, and starts witnesses before Shipper is set up.
func inherit(ctx context.Context) error {
	mgmt, applications := world.Fleet.Management, world.Fleet.Applications
	if err := original.Kinds(ctx, mgmt); err != nil {
		return err
	}
	if err := original.SetUp(ctx, mgmt); err != nil {
		return err
	}
	regions := []string{westRegion, eastRegion}
	for i, c := range applications {
		if err := original.Join(ctx, mgmt, c, regions[i]); err != nil {
			return err
		}
	}
	for _, r := range []original.Rollout{{Namespace: "inherited-at-rest"}, {Namespace: "inherited-stuck", Stuck: true}} {
		r.App, r.Charts, r.Regions = appName, world.Charts.URL, regions
		left := &inheritance{Rollout: r}
		var err error
		if left.incumbent, left.contender, err = r.Leave(ctx, mgmt, applications); err != nil {
			return err
		}
		if left.conditions, err = newConditionWitness(context.WithoutCancel(ctx), mgmt, r.Namespace); err != nil {
			return err
		}
		for _, c := range applications {
			w, err := newWitness(context.WithoutCancel(ctx), c, r.Namespace)
			if err != nil {
				return err
			}
			left.witnesses = append(left.witnesses, w)
		}
		world.inherited = append(world.inherited, left)
	}
	return original.Shut(ctx, mgmt)
}

// TestRolloutsOfTheOriginalGoOn takes over two rollouts of the original: one between two steps, one whose image cannot be
// pulled. The takeover changes nothing that runs, and then each rollout goes on as its user requests.
func TestRolloutsOfTheOriginalGoOn(t *testing.T) {
	t.Parallel()
	for _, left := range world.inherited {
		t.Run(left.Namespace, func(t *testing.T) {
			t.Parallel()
			s := &fixture{Rollout: *world.In(t, left.Namespace, left.App), clusters: []string{west, east}, regions: left.Regions}
			t.Cleanup(func() {
				if t.Failed() {
					s.Dump()
				}
			})
			s.isTakenOver(left)
			s.turnedNothingFalse(left)
			for _, w := range left.witnesses {
				for _, moved := range s.movements(w) {
					t.Errorf("it moved: %s", moved)
				}
			}
			s.wroteOnlyMarks(left)
			if left.Stuck {
				s.Edits(func(app *shipper.Application) { delete(*app.Spec.Template.Values, "image") })
				left.contender = s.releaseAfter(left.contender)
				s.WaitsForCommand(left.contender, 0)
			} else {
				s.WaitsForCommand(left.contender, 1)
			}
			s.endpoints(original.Total)
			s.Steps(left.contender, 2)
			s.Completes(left.contender)
			s.readyPods(left.contender, original.Total)
			s.readyPods(left.incumbent, 0)
			s.endpoints(original.Total)
		})
	}
}

// isTakenOver waits until Shipper has reconciled and marked all objects of the rollout.
func (s *fixture) isTakenOver(left *inheritance) {
	s.Helper()
	for _, name := range []string{left.incumbent, left.contender} {
		for _, cluster := range s.clusters {
			s.Eventually("the anchor of "+name+" in "+cluster, "ours", func() (string, error) {
				anchor := &corev1.ConfigMap{}
				err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: shipper.AnchorName(name)}, anchor)
				if anchor.Data["RenderedFrom"] == "" {
					return fmt.Sprint(anchor.Data), err
				}
				return "ours", err
			})
		}
		s.Eventually("what is said of "+name, "Scheduled True", func() (string, error) {
			rel, err := s.Get(name)
			if rel.Status.ObservedGeneration != rel.Generation || rel.Status.ObservedGeneration == 0 {
				return "nothing yet", err
			}
			c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseScheduled)
			return fmt.Sprintf("Scheduled %s", c.Status), err
		})
	}
	want := "waiting for command"
	if left.Stuck {
		want = "waiting for capacity"
	}
	s.Eventually("what "+left.contender+" waits for", want, func() (string, error) {
		rel, err := s.Get(left.contender)
		switch {
		case rel.Status.Strategy == nil:
			return "nothing", err
		case rel.Status.Strategy.State.WaitingForCommand == "True":
			return "waiting for command", err
		case rel.Status.Strategy.State.WaitingForCapacity == "True":
			return "waiting for capacity", err
		}
		return fmt.Sprint(rel.Status.Strategy.State), err
	})
}

// wroteOnlyMarks fails if Shipper wrote anything to the application clusters but the marks of ownership and the Service's
// selector.
func (s *fixture) wroteOnlyMarks(left *inheritance) {
	s.Helper()
	want := []string{"patch services test-nginx-prod"}
	for _, name := range []string{left.incumbent, left.contender} {
		want = append(want, "patch configmaps "+shipper.AnchorName(name), "patch deployments "+name+"-test-nginx")
	}
	slices.Sort(want)
	for _, c := range world.Fleet.Applications {
		got := s.written(c, "system:serviceaccount:"+shipper.SystemNamespace+":"+shipper.ApplicationServiceAccount, s.Namespace)
		got = slices.DeleteFunc(got, func(write string) bool { return strings.HasSuffix(write, " test-nginx-prod-shipper-proof") })
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("what Shipper has written in %s (-want +got)\n%s", c.Name, diff)
		}
	}
}

// TestInstallationOfTheOriginalIsTakenOver checks the rights, Secrets and webhooks of the original after setup.
func TestInstallationOfTheOriginalIsTakenOver(t *testing.T) {
	t.Parallel()
	bound := map[string]string{}
	for cluster, c := range map[string]client.Client{"mgmt": world.Management, west: world.Clusters[west], east: world.Clusters[east]} {
		list := &rbacv1.ClusterRoleBindingList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, b := range list.Items {
			for _, subject := range b.Subjects {
				if subject.Namespace == shipper.SystemNamespace {
					bound[cluster+": "+b.RoleRef.Name] = subject.Name
				}
			}
		}
	}
	want := map[string]string{"mgmt: shipper:management-cluster": shipper.ManagementServiceAccount}
	for _, name := range []string{west, east} {
		want[name+": shipper:application-cluster"] = shipper.ApplicationServiceAccount
		want[name+": shipper:application-cluster-additions"] = shipper.ApplicationServiceAccount
	}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("what Shipper's accounts may (-want +got)\n%s", diff)
	}
	for _, name := range []string{west, east} {
		cluster, secret := &shipper.Cluster{}, &corev1.Secret{}
		for key, o := range map[client.ObjectKey]client.Object{
			{Name: name}: cluster, {Namespace: shipper.SystemNamespace, Name: name}: secret,
		} {
			if err := world.Management.Get(t.Context(), key, o); err != nil {
				t.Fatal(err)
			}
		}
		owner := []metav1.OwnerReference{{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Cluster", Name: name, UID: cluster.UID}}
		if diff := cmp.Diff(owner, secret.OwnerReferences); diff != "" {
			t.Errorf("the owner of Secret %s (-want +got)\n%s", name, diff)
		}
	}
}
