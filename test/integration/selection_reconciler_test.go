// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/resourcesnapshot"
	"shipper.dev/shipper/reconciler/rollout/history"
	"shipper.dev/shipper/reconciler/selection"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// selections are what tests of template.resources share: in the management cluster the reconciler of selections runs, by Shipper's own
// account with the rights of manifests/rbac, to which each test grants more.
var selections struct {
	client client.WithWatch
	// snapshots read what is kept, as the account of the reconciler.
	snapshots *resourcesnapshot.Snapshots
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

// setUpSelections starts the reconciler. It stops with ctx; then its error comes.
func setUpSelections(ctx context.Context, config *rest.Config) (<-chan error, error) {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if selections.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	if err := grant(ctx); err != nil {
		return nil, err
	}
	const account = "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount
	config = env.As(config, account, "system:serviceaccounts", "system:authenticated")
	config.QPS = -1
	return operateSelections(ctx, config)
}

// grant creates Shipper's account with the rights of the manifests.
func grant(ctx context.Context) error {
	rights, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return err
	}
	for _, o := range rights {
		isGlobal := o.GetNamespace() != "" && o.GetNamespace() != shipper.SystemNamespace
		if o.GetLabels()[shipper.RBACDomainLabel] != shipper.RBACManagement || isGlobal {
			continue
		}
		if err := selections.client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func operateSelections(ctx context.Context, config *rest.Config) (<-chan error, error) {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Cache: reconciler.CacheOptions(shipper.SystemNamespace), NewClient: newPermitted,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: controllers.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, err
	}
	histories, err := history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	selections.snapshots = resourcesnapshot.New(mgr.GetClient(), mgr.GetAPIReader())
	err = selection.SetupWithManager(mgr, selection.Options{
		Snapshots: selections.snapshots, Histories: histories, Policy: objects.Policy{}, GlobalBlocksNamespace: shipper.GlobalBlocksNamespace,
		Clock: &selections.clock, Workers: 4,
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

// permitted is a client that answers pins that ask as the webhook does, which does not run here: each user may place all.
type permitted struct{ client.Client }

func newPermitted(config *rest.Config, o client.Options) (client.Client, error) {
	c, err := reconciler.NewClient(config, o)
	return permitted{c}, err
}

// Patch is client.Client.
func (c permitted) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	err := c.Client.Patch(ctx, o, p, options...)
	app, ok := o.(*shipper.Application)
	if err != nil || !ok || app.Spec.Template.Pins == nil || app.Spec.Template.Pins.Resources != shipper.AskingPin {
		return err
	}
	var refusal *response.Refusal
	if err = resources.Allowed(app.Name); errors.As(err, &refusal) {
		return &apierrors.StatusError{ErrStatus: refusal.Status}
	}
	return err
}
