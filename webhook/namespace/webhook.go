// SPDX-License-Identifier: Apache-2.0

// Package namespace validates the deletion of namespaces: it is allowed when every Application in it may be deleted. Otherwise
// deleting the namespace would bypass RolloutBlocks.
package namespace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/response"
)

const resource = "namespaces"

// named is how many Applications a refusal names.
const named = 5

// State has the objects of a namespace.
type State interface {
	Applications(namespace string) ([]*metav1.PartialObjectMetadata, error)
	Releases(app types.NamespacedName) ([]*shipper.Release, error)
	GlobalNamespace() string
	Blocks(namespace string) ([]*shipper.RolloutBlock, error)
}

// Webhook validates deletions of namespaces.
type Webhook struct {
	BlockCheck *blockcheck.Checker
	State      State
	// Ready returns an error if the caches are not reliable. Then the deletion is allowed: the namespace may have nothing to do
	// with Shipper.
	Ready func(context.Context) error
}

// Validate validates a deletion.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	_, old, err := response.Decode[metav1.PartialObjectMetadata](req)
	if err != nil {
		return err
	}
	if req.Operation != admissionv1.Delete || !old.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := w.Ready(ctx); err != nil {
		a.Warn("whether RolloutBlocks hold what is in this namespace was not judged: %v", err)
		return nil
	}
	if err := w.judge(ctx, req, a, old.Name); err != nil {
		return err
	}
	return w.announce(a, old)
}

// judge refuses if the deletion of any Application alone would be refused. The overrides of an Application count for it; the
// namespace has no override annotation of its own.
func (w *Webhook) judge(ctx context.Context, req *admission.Request, a *response.Response, namespace string) error {
	apps, err := w.State.Applications(namespace)
	if err != nil {
		return err
	}
	all, held := tally{}, []string(nil)
	overrider := response.Overrider{Short: "app", Namespace: namespace, Name: "--all"}
	for _, app := range apps {
		v, err := w.verdict(ctx, req, app)
		if err != nil {
			return err
		}
		all.add(v)
		_, annotated := app.Annotations[shipper.RolloutBlockOverrideAnnotation]
		overrider.Annotated = overrider.Annotated || annotated
		if len(v.Effective) > 0 {
			held = append(held, app.Name)
		}
	}
	err = w.BlockCheck.Decide(a, resource, namespace, overrider, block.Verdict(all))
	var refusal *response.Refusal
	if errors.As(err, &refusal) {
		refusal.Status.Details.Group = ""
		refusal.Status.Message = "with namespace " + namespace + " would go " + list(held) + ": " + refusal.Status.Message
	}
	return err
}

// verdict is the effect of blocks on the deletion of one Application.
func (w *Webhook) verdict(
	ctx context.Context, req *admission.Request, app *metav1.PartialObjectMetadata,
) (block.Verdict, error) {
	rels, err := w.State.Releases(types.NamespacedName{Namespace: app.Namespace, Name: app.Name})
	if err != nil {
		return block.Verdict{}, err
	}
	labels, c := []map[string]string{app.Labels}, block.Change{Matches: w.BlockCheck.Requested(ctx, req)}
	for _, rel := range rels {
		labels = append(labels, block.LabelsOf(rel))
		c.Environments = append(c.Environments, &rel.Spec.Environment)
	}
	c.Labels = func() []map[string]string { return labels }
	return w.BlockCheck.Verdict(app.Namespace, block.Overrides(app.Annotations), c)
}

// tally is the effect of blocks on several Applications. One block can stop one of them and be overridden by another.
type tally block.Verdict

func (t *tally) add(v block.Verdict) {
	t.Effective = merge(t.Effective, v.Effective)
	t.Warning = merge(t.Warning, v.Warning)
	t.Auditing = merge(t.Auditing, v.Auditing)
	t.Overridden = merge(t.Overridden, v.Overridden)
}

// merge joins two lists in the order of names, without repetitions.
func merge(a, b []*shipper.RolloutBlock) []*shipper.RolloutBlock {
	if len(b) == 0 || slices.Equal(a, b) {
		return a
	}
	byName := func(x, y *shipper.RolloutBlock) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	}
	same := func(x, y *shipper.RolloutBlock) bool { return byName(x, y) == 0 }
	return slices.CompactFunc(slices.SortedFunc(slices.Values(slices.Concat(a, b)), byName), same)
}

// announce warns of the blocks that are deleted with the namespace: while it is being deleted, no event in it can record the
// user.
func (w *Webhook) announce(a *response.Response, ns *metav1.PartialObjectMetadata) error {
	blocks, err := w.State.Blocks(ns.Name)
	if err != nil || len(blocks) == 0 {
		return err
	}
	where := "this namespace"
	if ns.Name == w.State.GlobalNamespace() {
		where = "every namespace"
	}
	names := block.FormatOverrides(block.Names(blocks))
	a.Audit(response.AuditBlockLifted, names)
	a.Warn("with it go RolloutBlocks that stop rollouts in %s: %s", where, names)
	return nil
}

// list names the first few Applications.
func list(apps []string) string {
	slices.Sort(apps)
	out := "Application " + apps[0]
	if len(apps) > 1 {
		out = "Applications " + strings.Join(apps[:min(len(apps), named)], ", ")
	}
	if more := len(apps) - named; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
