// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// fieldOwner is the field manager of restored objects.
const fieldOwner = "shipperctl"

// progressInterval is the time between two lines about long work. Short work prints none.
const progressInterval = 3 * time.Second

// restorer creates the objects of a backup that the cluster lacks. Existing objects stay as they are, so that it can be run again
// when something went wrong.
type restorer struct {
	client client.Client
	// out gets a line for each problem; verbose for every object.
	out     io.Writer
	verbose bool

	// progress gets lines about long work; said is the time of the last.
	progress io.Writer
	clock    clock.PassiveClock
	said     time.Time

	namespaces     map[string]bool // that are known to be there
	created, there int
	// apart reports that a second has passed since everything but Notifications was created.
	apart bool
}

// restore writes everything. It goes on after an error, unless the error would meet every write.
func (r *restorer) restore(ctx context.Context, b Backup) error {
	var problems []error
	for _, step := range []func(context.Context, Entry) error{
		r.identity, r.cluster, r.chart, r.resources, r.check, r.strategy, r.envelope, r.application, r.block, r.notification,
	} {
		for i, e := range b {
			err := step(ctx, e)
			if now := r.clock.Now(); now.Sub(r.said) >= progressInterval {
				r.said = now
				fmt.Fprintf(r.progress, "looked at %d of %d entries, %d objects were created\n", i+1, len(b), r.created)
			}
			if err == nil {
				err = ctx.Err()
			}
			if stops(err) || ctx.Err() != nil {
				return errors.Join(append(problems, err)...)
			}
			if err != nil {
				problems = append(problems, err)
			}
		}
	}
	problems = append(problems, r.overrides(ctx, b))
	return errors.Join(problems...)
}

// identity restores the identity of the management cluster. An existing one stays: ready has compared it.
func (r *restorer) identity(ctx context.Context, e Entry) error {
	if e.Identity == nil {
		return nil
	}
	_, err := r.ensure(ctx, e.Identity, creatable(e.Identity), nil)
	return err
}

func (r *restorer) cluster(ctx context.Context, e Entry) error {
	if e.Cluster == nil {
		return nil
	}
	live, err := r.ensure(ctx, e.Cluster, creatable(e.Cluster), nil)
	if err != nil {
		return err
	}
	if err := r.status(ctx, live, e.Cluster); err != nil || e.ClusterSecret == nil {
		return err
	}
	secret := creatable(e.ClusterSecret)
	setOwner(secret, e.ClusterSecret, live)
	_, err = r.ensure(ctx, e.ClusterSecret, secret, nil)
	return err
}

// chart restores the chart of Releases. It has no owner until Shipper sets those Releases as its owners.
func (r *restorer) chart(ctx context.Context, e Entry) error {
	if e.ChartSnapshot == nil {
		return nil
	}
	head, err := r.ensure(ctx, e.ChartSnapshot, creatable(e.ChartSnapshot), nil)
	if err != nil {
		return err
	}
	for _, part := range e.ChartParts {
		o := creatable(part)
		setOwner(o, part, head)
		if _, err := r.ensure(ctx, part, o, nil); err != nil {
			return err
		}
	}
	return nil
}

// check restores a Check. Applications come after it: the webhook refuses one whose strategy names a Check that is not there.
func (r *restorer) check(ctx context.Context, e Entry) error {
	if e.Check == nil {
		return nil
	}
	_, err := r.ensure(ctx, e.Check, creatable(e.Check), nil)
	return err
}

// strategy restores a Strategy, before the Applications that take it.
func (r *restorer) strategy(ctx context.Context, e Entry) error {
	if e.Strategy == nil {
		return nil
	}
	_, err := r.ensure(ctx, e.Strategy, creatable(e.Strategy), nil)
	return err
}

func (r *restorer) block(ctx context.Context, e Entry) error {
	if e.RolloutBlock == nil {
		return nil
	}
	o := creatable(e.RolloutBlock)
	if err := ttlToExpiry(o, e.RolloutBlock); err != nil {
		return err
	}
	live, err := r.ensure(ctx, e.RolloutBlock, o, nil)
	if err != nil {
		return err
	}
	return r.status(ctx, live, e.RolloutBlock)
}

// notification restores a Notification without its status. Without deliveredUpToTime, it is of changes after its creation: restored
// Releases, which are created in an earlier second, cause no message.
func (r *restorer) notification(ctx context.Context, e Entry) error {
	if e.Notification == nil {
		return nil
	}
	if !r.apart && r.created > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second): // the API server's time counts, and not that of clock
		}
		r.apart = true
	}
	_, err := r.ensure(ctx, e.Notification, creatable(e.Notification), nil)
	return err
}

// application restores an Application with its Releases and their targets, oldest first, and each status; the Application's status
// comes last. While it has none and its newest Release is missing, Shipper waits for that Release.
func (r *restorer) application(ctx context.Context, e Entry) error {
	if e.Application == nil {
		return nil
	}
	o := creatable(e.Application)
	withoutOverrides(o)
	app, err := r.ensure(ctx, e.Application, o, sameApplication)
	if err != nil {
		return fmt.Errorf("%w\nits releases are left out", err)
	}
	for _, rel := range e.Releases {
		if err := r.release(ctx, rel, app); err != nil {
			return fmt.Errorf("%s is not whole, restore again before Shipper starts: %w", describe(app), err)
		}
	}
	return r.status(ctx, app, e.Application)
}

func (r *restorer) release(ctx context.Context, was Release, app *object) error {
	o := creatable(was.Release)
	withoutOverrides(o)
	rel, err := r.ensureOwned(ctx, was.Release, o, app, sameRelease)
	if err != nil {
		return err
	}
	for _, target := range []*object{was.InstallationTarget, was.TrafficTarget, was.CapacityTarget} {
		if target == nil {
			continue
		}
		o := creatable(target)
		if target != was.InstallationTarget {
			asFound(o)
		}
		live, err := r.ensureOwned(ctx, target, o, rel, nil)
		if err != nil {
			return err
		}
		if err := r.status(ctx, live, target); err != nil {
			return err
		}
	}
	return r.status(ctx, rel, was.Release)
}

// ensureOwned is ensure for an object of owner; an existing one must have that owner.
func (r *restorer) ensureOwned(ctx context.Context, was, o, owner *object, same sameness) (*object, error) {
	setOwner(o, was, owner)
	live, err := r.ensure(ctx, was, o, same)
	if err == nil && !owned(live, owner.GetUID()) {
		return nil, fmt.Errorf("%s is there and does not belong to %s of uid %s: delete it and restore again",
			describe(live), describe(owner), owner.GetUID())
	}
	return live, err
}

// sameness reports whether the live object is the one of the backup.
type sameness func(live, was *object) (bool, error)

// ensure creates o, the object that was backed up as was, and returns the stored object. An existing one must be the same; nil
// asks nothing.
func (r *restorer) ensure(ctx context.Context, was, o *object, same sameness) (*object, error) {
	live, err := get(ctx, r.client, was.GroupVersionKind(), key(was))
	if err != nil {
		return nil, err
	}
	if live != nil {
		if same != nil {
			alike, err := same(live, was)
			if err != nil {
				return nil, err
			}
			if !alike {
				return nil, fmt.Errorf("%s is there and is not as in the backup: it is left as it is", describe(live))
			}
		}
		r.there++
		r.progressf("%s already exists. Skipping", describe(live))
		return live, nil
	}
	if err := r.namespace(ctx, o.GetNamespace()); err != nil {
		return nil, err
	}
	if lost := lostOwners(was, o); len(lost) > 0 && !ownedLater(was) {
		fmt.Fprintf(r.out, "Note: %s belonged to %v, which is not in the backup\n", describe(o), lost)
	}
	for _, ref := range o.GetOwnerReferences() {
		r.progressf("%s owner reference updates with uid %q", describe(o), ref.UID)
	}
	if err := r.client.Create(ctx, o, client.FieldOwner(fieldOwner)); err != nil {
		return nil, fmt.Errorf("creating %s: %w", describe(o), err)
	}
	r.created++
	r.progressf("%s created", describe(o))
	return o, nil
}

func (r *restorer) namespace(ctx context.Context, name string) error {
	if name == "" || r.namespaces[name] {
		return nil
	}
	ns := &object{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	ns.SetName(name)
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		if err = r.client.Create(ctx, ns, client.FieldOwner(fieldOwner)); err == nil {
			r.progressf("namespace %q created", name)
		}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %q: %w", name, err)
	}
	r.namespaces[name] = true
	return nil
}

// status restores the status of an object that has none.
func (r *restorer) status(ctx context.Context, live, was *object) error {
	status := statusOf(was)
	if have, _, _ := unstructured.NestedMap(live.Object, "status"); len(have) > 0 || status == nil {
		return nil
	}
	o := live.DeepCopy()
	if err := unstructured.SetNestedMap(o.Object, status, "status"); err != nil {
		return fmt.Errorf("restoring the status of %s: %w", describe(live), err)
	}
	if err := r.client.Status().Update(ctx, o, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("restoring the status of %s: %w", describe(live), err)
	}
	return nil
}

func (r *restorer) progressf(format string, args ...any) {
	if r.verbose {
		fmt.Fprintf(r.out, format+"\n", args...)
	}
}

// overrides restores the overrides of RolloutBlocks, after the blocks.
func (r *restorer) overrides(ctx context.Context, b Backup) error {
	var overriding []*object
	for _, e := range b {
		if e.Application == nil {
			continue
		}
		for _, o := range append([]*object{e.Application}, releasesOf(e)...) {
			if o.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
				overriding = append(overriding, o)
			}
		}
	}
	if len(overriding) == 0 {
		return nil
	}
	all, err := list(ctx, r.client, blockKind)
	if err != nil {
		return err
	}
	blocks := map[types.NamespacedName]types.UID{}
	for i := range all {
		blocks[key(&all[i])] = all[i].GetUID()
	}
	var problems []error
	for _, was := range overriding {
		problems = append(problems, r.override(ctx, was, overridesOf(was, blocks)))
	}
	return errors.Join(problems...)
}

// override restores the overrides of an object that has none.
func (r *restorer) override(ctx context.Context, was *object, want map[string]string) error {
	live, err := get(ctx, r.client, was.GroupVersionKind(), key(was))
	if err != nil || live == nil || len(want) == 0 || live.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
		return err
	}
	if err := cli.Annotate(ctx, r.client, live, want); err != nil {
		return fmt.Errorf("restoring what %s overrides: %w", describe(live), err)
	}
	r.progressf("%s overrides %s again", describe(live), want[shipper.RolloutBlockOverrideAnnotation])
	return nil
}

func releasesOf(e Entry) []*object {
	var out []*object
	for _, r := range e.Releases {
		out = append(out, r.Release)
	}
	return out
}
