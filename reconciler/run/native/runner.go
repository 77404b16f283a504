// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/access"
)

// maxRunners bounds the clients that are kept for ServiceAccounts, and maxPermitted the rights of these, for permittedFor.
const (
	maxRunners   = 256
	maxPermitted = 4096
	permittedFor = 30 * time.Second
)

// runners are clients that write as ServiceAccounts which namespaces bind to Shipper. They read nothing.
type runners struct {
	config *rest.Config
	scheme *runtime.Scheme
	// mapper is Shipper's own: an account that is not bound may not ask for it, and the refusal would not say why.
	mapper meta.RESTMapper
	kept   *lru.Cache
	// permitted has the rights of runners, as user, verb and Application.
	permitted *cache.LRUExpireCache
}

func newRunners(config *rest.Config, like client.Client) *runners {
	return &runners{
		config: config, scheme: like.Scheme(), mapper: like.RESTMapper(), kept: lru.New(maxRunners),
		permitted: cache.NewLRUExpireCache(maxPermitted),
	}
}

// of is the client of the ServiceAccount of a run. The API server gives it the groups of one.
func (r *runners) of(run *shipper.SequenceRun) (client.Client, error) {
	user := shipyard.Runner(run)
	if kept, there := r.kept.Get(user); there {
		if c, is := kept.(client.Client); is {
			return c, nil
		}
	}
	config := rest.CopyConfig(r.config)
	config.WarningHandler = rest.NoWarnings{} // they are for people
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: r.scheme, Mapper: r.mapper})
	if err != nil {
		return nil, fmt.Errorf("building the client of %s: %w", user, err)
	}
	r.kept.Add(user, c)
	return c, nil
}

// write does what an action says, as the runner. What the API server refuses for good is the outcome of the task.
func (t *Tasks) write(ctx context.Context, o *observed, a action) (shipyard.Outcome, error) {
	if a.apply == nil && a.patch == nil && a.remove == nil && a.begin == nil {
		return a.outcome, nil
	}
	c, err := t.runners.of(o.run)
	if err != nil {
		return a.outcome, err
	}
	switch {
	case a.apply != nil:
		a.outcome.Generation, err = apply(ctx, c, a.apply)
	case a.patch != nil:
		err = merge(ctx, c, a.patch)
	case a.remove != nil:
		err = c.Delete(ctx, a.remove, client.Preconditions{UID: &a.remove.UID})
		err = client.IgnoreNotFound(err)
	case a.begin != nil:
		err = t.begin(ctx, o, a.begin)
	}
	return t.refused(o, a.outcome, err)
}

// apply sets fields of the Application and returns its generation. It takes fields over from those who edited them by hand, but not from
// manifests and programs that declare them: these would set them again.
func apply(ctx context.Context, c client.Client, is map[string]any) (int64, error) {
	o := &unstructured.Unstructured{Object: is}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(shipper.RunFieldManager))
	if apierrors.IsConflict(err) && fieldConflict(err) && declared(err) == "" {
		o = &unstructured.Unstructured{Object: is}
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(shipper.RunFieldManager), client.ForceOwnership)
	}
	if err != nil {
		return 0, fmt.Errorf("writing application %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return o.GetGeneration(), nil
}

// fieldConflict reports whether an error is about the owners of fields, and not about an object that has changed.
func fieldConflict(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 &&
		status.Status().Details.Causes[0].Type == metav1.CauseTypeFieldManagerConflict
}

// byHand are field managers that set a field once, when a user asks for it: what they set is taken over. Shipper itself is one when it goes
// back to a Release. kubectl has a name for each command, and kubectl apply --server-side tells its user of fields that a run has set.
var byHand = []string{"shipperctl", "shipper-reconciler", shipper.FieldOwner, shipper.RunFieldManager}

// declared says who declares a field that a run sets too; empty if all of those that were set were set by hand.
func declared(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		_, manager, _ := strings.Cut(cause.Message, `conflict with "`)
		manager, how, _ := strings.Cut(manager, `"`)
		updated := strings.Contains(how, "using") // the API server says that of those who did not apply
		hand := strings.HasPrefix(manager, "kubectl") || updated && slices.Contains(byHand, manager)
		if cause.Type == metav1.CauseTypeFieldManagerConflict && !hand {
			return fmt.Sprintf("%s is set by %s: leave it out of the manifest there, so that runs can set it", strings.TrimPrefix(cause.Field, "."),
				manager)
		}
	}
	return ""
}

// merge patches an object that is as it was observed.
func merge(ctx context.Context, c client.Client, p *patch) error {
	meta, _ := p.body["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		p.body["metadata"] = meta
	}
	meta["resourceVersion"] = p.version
	raw, err := json.Marshal(p.body)
	if err != nil {
		return fmt.Errorf("encoding the change of %s %s: %w", p.kind, p.key, err)
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind(p.kind))
	o.Namespace, o.Name = p.key.Namespace, p.key.Name
	if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(shipper.RunFieldManager)); err != nil {
		return fmt.Errorf("changing %s %s: %w", p.kind, p.key, err)
	}
	return nil
}

// permitted is an error unless the runner of a run may do verb to the Application. A right that it had is asked for again after
// permittedFor.
func (t *Tasks) permitted(ctx context.Context, run *shipper.SequenceRun, verb string, key types.NamespacedName) error {
	user := shipyard.Runner(run)
	asked := user + " " + verb + " " + key.String()
	if _, had := t.runners.permitted.Get(asked); had {
		return nil
	}
	c, err := t.runners.of(run)
	if err != nil {
		return err
	}
	allowed, err := access.Own(ctx, c, rights.Action{
		Verb: verb, Group: shipper.GroupName, Resource: "applications", Namespace: key.Namespace, Name: key.Name,
	})
	if err != nil {
		return fmt.Errorf("asking for the rights of %s: %w", user, err)
	}
	if !allowed {
		return apierrors.NewForbidden(shipper.GroupVersion.WithResource("applications").GroupResource(), key.Name,
			fmt.Errorf("%s may not %s it", user, verb))
	}
	t.runners.permitted.Add(asked, true, permittedFor)
	return nil
}

// begin creates a CheckTarget as Shipper, for a runner that may change the Application: its chart could run the same.
func (t *Tasks) begin(ctx context.Context, o *observed, target *shipper.CheckTarget) error {
	if err := t.permitted(ctx, o.run, "patch", o.key); err != nil {
		return err
	}
	if err := t.client.Create(ctx, target); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating CheckTarget %s/%s: %w", target.Namespace, target.Name, err)
	}
	return nil
}

// refused turns what the API server refuses for good into an outcome: a block is waited for, and all else ends the task.
func (t *Tasks) refused(o *observed, out shipyard.Outcome, err error) (shipyard.Outcome, error) {
	switch {
	case err == nil:
		return out, nil
	case block.RefusedBy(err) != "":
		out.Blocked = reason(err)
		return out, nil
	case apierrors.IsConflict(err) && fieldConflict(err):
		return failed(out, declared(err)), nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate"):
		return failed(out, fmt.Sprintf("ServiceAccount %s is not bound to Shipper: %s", o.run.Status.Resolved.ServiceAccountName,
			shipper.BindCommand(shipper.RunnerImpersonatorRole, o.run.Namespace))), nil
	case apierrors.IsForbidden(err):
		account := o.run.Status.Resolved.ServiceAccountName
		return failed(out, fmt.Sprintf("%s; if a right is missing: %s", reason(err),
			shipper.BindRunnerCommand(o.run.Namespace, account, o.key.Namespace))), nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return failed(out, "refused: "+reason(err)), nil
	}
	return out, err
}

func failed(out shipyard.Outcome, message string) shipyard.Outcome {
	out.Result, out.Completion, out.Message = shipper.ResultFail, shipper.CompletionErrored, message
	return out
}

// reason is the message of the API server, without what was done.
func reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
