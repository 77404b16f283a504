// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/targets"
)

// deleteHooks are the hooks that the deletion of an Application runs: those of the newest Release that is installed in a cluster.
type deleteHooks struct {
	// in has, by the name of an InstallationTarget, the clusters where hooks of its chart run.
	in map[string][]string
	// waits says, for each cluster, which hooks are to end before anything is removed, and failed that one of them failed.
	waits  []string
	failed bool
}

// planDeleteHooks is pure. The targets are of the Application's own Releases, the newest first.
func planDeleteHooks(newestFirst []*shipper.InstallationTarget) deleteHooks {
	p := deleteHooks{in: map[string][]string{}}
	decided := map[string]bool{}
	for _, it := range newestFirst {
		for i := range it.Status.Clusters {
			c := &it.Status.Clusters[i]
			hooks := slices.DeleteFunc(slices.Clone(c.Hooks), func(run shipper.HookRun) bool {
				return run.Event != shipper.HookEventPreDelete && run.Event != shipper.HookEventPostDelete
			})
			if decided[c.Name] || len(hooks) == 0 && c.Status != shipper.InstallationStatusInstalled {
				continue
			}
			decided[c.Name] = true
			if len(hooks) == 0 {
				continue
			}
			p.in[it.Name] = append(p.in[it.Name], c.Name)
			if slices.ContainsFunc(hooks, func(run shipper.HookRun) bool {
				return run.Event == shipper.HookEventPreDelete && run.Phase != shipper.HookSucceeded
			}) {
				p.wait(c)
			}
		}
	}
	slices.Sort(p.waits)
	return p
}

// wait notes a cluster whose hooks have not ended.
func (p *deleteHooks) wait(c *shipper.ClusterInstallationStatus) {
	message := "pre-delete hooks are to run"
	if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); ready != nil && ready.Status != corev1.ConditionTrue {
		message = cmp.Or(ready.Message, message)
		p.failed = p.failed || ready.Reason == shipper.HookFailed
	}
	p.waits = append(p.waits, "cluster "+c.Name+": "+message)
}

// runDeleteHooks has the hooks of an Application's chart run before any of its Releases, oldest first, goes. It returns true while the
// Releases stay.
func (r *pass) runDeleteHooks(ctx context.Context, app *shipper.Application, rels []*shipper.Release) (bool, error) {
	if len(rels) == 0 || rels[len(rels)-1].Spec.Environment.Resources != nil {
		return false, nil
	}
	var list shipper.InstallationTargetList
	if err := targets.OfApplication(ctx, r.live, &list, app.Namespace, app.Name); err != nil {
		return false, err
	}
	var newestFirst []*shipper.InstallationTarget
	for _, rel := range slices.Backward(rels) {
		at := slices.IndexFunc(list.Items, func(it shipper.InstallationTarget) bool { return it.Name == rel.Name })
		if at >= 0 {
			newestFirst = append(newestFirst, &list.Items[at])
		}
	}
	p := planDeleteHooks(newestFirst)
	if app.Annotations[shipper.AppDeleteSkipHooksAnnotation] == "true" {
		p = deleteHooks{}
	}
	for _, it := range newestFirst {
		if err := r.setDeleteHooks(ctx, it, strings.Join(p.in[it.Name], ",")); err != nil {
			return false, err
		}
	}
	if len(p.waits) == 0 {
		return false, r.endDeleting(ctx, app)
	}
	return true, r.reportDeleting(ctx, app, p.failed, strings.Join(p.waits, "\n"))
}

// awaitDeleteHooks returns true while post-delete hooks keep an Application whose Releases are gone. Targets are read from the cache: an
// Application that goes too early takes nothing with it but the way to say so.
func (r *pass) awaitDeleteHooks(ctx context.Context, app *shipper.Application) (bool, error) {
	with, err := r.withDeleteHooks(ctx, app)
	if err != nil {
		return false, err
	}
	skip := app.Annotations[shipper.AppDeleteSkipHooksAnnotation] == "true"
	var waits []string
	failed := false
	for _, it := range with {
		want, _ := strings.CutPrefix(it.Annotations[shipper.DeleteHooksAnnotation], shipper.DeleteHooksHeld)
		if skip {
			want = ""
		}
		if err := r.setDeleteHooks(ctx, it, want); err != nil {
			return false, err
		}
		if skip {
			continue
		}
		ready := shipper.FindCondition(it.Status.Conditions, shipper.TargetReady)
		if ready == nil || ready.Status == corev1.ConditionTrue {
			waits = append(waits, "what Release "+it.Name+" installed is being removed")
			continue
		}
		failed = failed || ready.Reason == shipper.HookFailed
		waits = append(waits, ready.Message)
	}
	if len(waits) == 0 {
		return false, nil
	}
	return true, r.reportDeleting(ctx, app, failed, strings.Join(waits, "\n"))
}

// holdDeleteHooks has hooks wait that run, or would be tried again, while a block holds the deletion.
func (r *pass) holdDeleteHooks(ctx context.Context, app *shipper.Application) error {
	with, err := r.withDeleteHooks(ctx, app)
	if err != nil {
		return err
	}
	for _, it := range with {
		is := it.Annotations[shipper.DeleteHooksAnnotation]
		if strings.HasPrefix(is, shipper.DeleteHooksHeld) {
			continue
		}
		if err := r.setDeleteHooks(ctx, it, shipper.DeleteHooksHeld+is); err != nil {
			return err
		}
	}
	return nil
}

// withDeleteHooks are the targets of an Application that name clusters where hooks of the deletion run, by the cache.
func (r *pass) withDeleteHooks(ctx context.Context, app *shipper.Application) (out []*shipper.InstallationTarget, err error) {
	var list shipper.InstallationTargetList
	if err := targets.OfApplication(ctx, r.client, &list, app.Namespace, app.Name); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Annotations[shipper.DeleteHooksAnnotation] != "" {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// setDeleteHooks names in a target the clusters where hooks of the deletion run, unless it was changed since it was read.
func (r *pass) setDeleteHooks(ctx context.Context, it *shipper.InstallationTarget, want string) error {
	if it.Annotations[shipper.DeleteHooksAnnotation] == want {
		return nil
	}
	is := it.DeepCopy()
	if want == "" {
		delete(is.Annotations, shipper.DeleteHooksAnnotation)
	} else {
		if is.Annotations == nil {
			is.Annotations = map[string]string{}
		}
		is.Annotations[shipper.DeleteHooksAnnotation] = want
	}
	if err := client.IgnoreNotFound(r.client.Patch(ctx, is, onlyIfUnchanged(it))); err != nil {
		return fmt.Errorf("having hooks run for the deletion of InstallationTarget %s/%s: %w", it.Namespace, it.Name, err)
	}
	return nil
}

// endDeleting takes back what was said of hooks that have ended.
func (r *pass) endDeleting(ctx context.Context, app *shipper.Application) error {
	is := *app.Status.DeepCopy()
	is.Conditions = events.Without(is.Conditions, shipper.ApplicationDeleting)
	if len(is.Conditions) == len(app.Status.Conditions) {
		return nil
	}
	return r.persistApplication(ctx, app, is)
}

// reportDeleting says in the Application which hooks its deletion waits for.
func (r *pass) reportDeleting(ctx context.Context, app *shipper.Application, failed bool, message string) error {
	is := *app.Status.DeepCopy()
	is.ObservedGeneration = app.Generation
	reason := shipper.InProgress
	if failed {
		reason = shipper.HookFailed
	}
	is.Conditions = shipper.SetCondition(is.Conditions, shipper.Condition{
		Type: shipper.ApplicationDeleting, Status: corev1.ConditionTrue, Reason: reason, Message: report.Shorten(message, maxMessage),
	}, r.now)
	return r.persistApplication(ctx, app, is)
}
