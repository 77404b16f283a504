// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/selection"
	"shipper.dev/shipper/test/env"
)

// selections are what tests of template.resources share, in the cluster of rollouts: the reconciler of rollouts runs there by Shipper's own
// account with the rights of manifests/rbac, to which each test grants more.
var selections struct {
	// snapshots read what is kept, as the account of the reconciler.
	snapshots *artifact.Resources
	clock     heldClock
}

// heldClock is a clock that stands still while a test holds it. Content is taken a second after the last change, and five seconds after the
// first: without it, the load of the machine would decide how much of what a test writes is taken at once.
type heldClock struct {
	mu    sync.Mutex
	holds int
	at    time.Time
	asked int // how often it was asked since it was held first
}

// Now is the time, or when the clock was held.
func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds > 0 {
		c.asked++
		return c.at
	}
	return time.Now()
}

// Since is the time since then.
func (c *heldClock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// wasAsked returns an error until the held clock was asked that often.
func (c *heldClock) wasAsked(times int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked < times {
		return fmt.Errorf("the clock was asked %d times, not %d", c.asked, times)
	}
	return nil
}

// hold stops the clock until release is called.
func (c *heldClock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds == 0 {
		c.at, c.asked = time.Now(), 0
	}
	c.holds++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.holds--
	})
}

// selectionOptions are those of a process that reads what Applications select.
func selectionOptions() selection.Options {
	return selection.Options{Policy: objects.Policy{}, Clock: &selections.clock}
}

// asShipper is config with Shipper's account, to which it grants the rights of the manifests.
func asShipper(ctx context.Context, config *rest.Config, admin client.Client) (*rest.Config, error) {
	if err := grant(ctx, admin); err != nil {
		return nil, err
	}
	if err := letWriteBlocks(ctx, admin); err != nil {
		return nil, err
	}
	const account = "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount
	out := env.As(config, account, "system:serviceaccounts", "system:authenticated")
	out.QPS = -1
	return out, nil
}

// grant creates Shipper's account with the rights of the manifests.
func grant(ctx context.Context, admin client.Client) error {
	rights, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return err
	}
	for _, o := range rights {
		isGlobal := o.GetNamespace() != "" && o.GetNamespace() != shipper.SystemNamespace
		if o.GetLabels()[shipper.RBACDomainLabel] != shipper.RBACManagement || isGlobal {
			continue
		}
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// letWriteBlocks grants what tests of the manager's client need beside.
func letWriteBlocks(ctx context.Context, admin client.Client) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test:blocks"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"rolloutblocks"}, Verbs: []string{"create", "patch", "delete"},
	}}}
	return errors.Join(admin.Create(ctx, role), admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount}},
	}))
}
