// SPDX-License-Identifier: Apache-2.0

// Package resources judges what Applications and Envelopes place: whether their kinds and namespaces may be placed, whether the author
// has the right to it, and whether Shipper may read it.
package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/outward/boundedcel"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/bounds"
	"shipper.dev/shipper/webhook/response"
)

const (
	// timeout bounds each of: finding kinds, asking for rights.
	timeout = time.Second
	// atOnce bounds the requests of one judgement that run at the same time.
	atOnce = 20
)

// Judge judges what is placed.
type Judge struct {
	Authz authz.Authorizer
	// Kinds finds kinds. Nil: Applications with resources and Envelopes are refused.
	Kinds  Kinds
	Policy objects.Policy
	// Reconciler is the user name of Shipper's reconciler, which reads what is selected.
	Reconciler string
}

// Path is where selectors are in an Application.
var Path = field.NewPath("spec", "template", "resources", "select")

var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	readyPath     = field.NewPath("spec", "template", "resources", "ready")
)

// Selection is what an Application selects, by kinds that are known.
type Selection struct {
	namespace string
	items     []item
	// Content are the recorded rights that objects in Envelopes need, which the selectors do not name.
	Content []rights.Action
	// Late has the selectors whose kind could not be looked up in time, with the reason. Their rights cannot be judged.
	Late []string
}

// item is a selector with its kind.
type item struct {
	index int
	*shipper.ResourceSelector
	kind Kind
	// namespace of the objects; empty for kinds without one.
	namespace string
}

// isNamespace reports whether the item selects Namespaces.
func (i *item) isNamespace() bool { return i.kind.GroupKind() == namespaceKind }

// hasContent reports whether the content of Namespaces is selected with them.
func (i *item) hasContent() bool { return i.isNamespace() && i.Content != shipper.ContentNone }

// path is that of the selector.
func (i *item) path() *field.Path { return Path.Index(i.index) }

// Resolve finds the kinds of what app selects, and refuses those that may not be placed. It must have resources.
func (j *Judge) Resolve(ctx context.Context, app *shipper.Application) (*Selection, field.ErrorList, error) {
	if j == nil || j.Kinds == nil {
		return nil, nil, response.Unable("kinds are not looked up here: resources cannot be judged")
	}
	selectors := app.Spec.Template.Resources.Select
	found, errs := j.find(ctx, selectors)
	selection, refused := &Selection{namespace: app.Namespace}, field.ErrorList(nil)
	for i := range selectors {
		s := &selectors[i]
		// The policy knows kinds that are not served, such as those of calls, and says more about them.
		if r := j.Policy.Refused(gvkOf(s), "", ""); r != nil {
			refused = append(refused, field.Forbidden(Path.Index(i).Child("kind"), r.Reason))
			continue
		}
		switch {
		case errors.Is(errs[i], ErrNotServed):
			refused = append(refused, j.notServed(ctx, s, Path.Index(i)))
		case errs[i] != nil:
			selection.late(i, errs[i])
		default:
			one := item{index: i, ResourceSelector: s, kind: found[i]}
			if err := j.resolveNamespace(&one, app.Namespace); err != nil {
				refused = append(refused, err)
				continue
			}
			selection.items = append(selection.items, one)
		}
	}
	return selection, refused, nil
}

// Placed finds the kinds of what was selected in a namespace before. What may not be placed any more is not refused: to remove it needs the
// same rights. A kind that is not served any more is judged by the usual plural of its name. of has the recorded rights of the content.
func (j *Judge) Placed(ctx context.Context, namespace string, was *shipper.Resources, of map[string]string) (*Selection, error) {
	if j == nil || j.Kinds == nil {
		return nil, response.Unable("kinds are not looked up here: resources cannot be judged")
	}
	found, errs := j.find(ctx, was.Select)
	out := &Selection{namespace: namespace, Content: rights.Recorded(was, of)}
	for i := range was.Select {
		one := item{index: i, ResourceSelector: &was.Select[i], kind: found[i]}
		switch {
		case errors.Is(errs[i], ErrNotServed):
			one.kind = unserved(gvkOf(one.ResourceSelector), one.Namespace)
		case errs[i] != nil:
			out.late(i, errs[i])
			continue
		}
		if one.kind.Namespaced {
			one.namespace = cmp.Or(one.Namespace, namespace)
		}
		out.items = append(out.items, one)
	}
	return out, nil
}

// unserved is a kind that the API server does not serve: it has the usual plural of its name, and namespaces if one is named.
func unserved(gvk schema.GroupVersionKind, namespace string) Kind {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return Kind{GroupVersionKind: gvk, Resource: plural.Resource, Namespaced: namespace != ""}
}

// find looks up the kind of each selector.
func (j *Judge) find(ctx context.Context, selectors []shipper.ResourceSelector) ([]Kind, []error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, errs := make([]Kind, len(selectors)), make([]error, len(selectors))
	each(len(selectors), func(i int) {
		gk := schema.GroupKind{Group: selectors[i].Group, Kind: selectors[i].Kind}
		found[i], errs[i] = j.Kinds.Find(ctx, gk, selectors[i].Version)
	})
	return found, errs
}

// late notes that the kind of a selector could not be looked up in time.
func (s *Selection) late(index int, why error) {
	s.Late = append(s.Late, fmt.Sprintf("select[%d]: whether you may place it cannot be judged now: %v", index, why))
}

// workloads are the kinds that run Pods where they are.
var workloads = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
}

// Warnings name the selectors that cannot be judged now, and those whose objects run Pods in the management cluster as well.
func (s *Selection) Warnings() []string {
	out := slices.Clone(s.Late)
	for _, one := range s.items {
		switch {
		case slices.Contains(workloads, one.kind.GroupKind()):
			out = append(out, fmt.Sprintf("select[%d]: each %s runs its Pods here as well: put it into an Envelope", one.index, one.kind.Kind))
		case one.hasContent():
			out = append(out, fmt.Sprintf("select[%d]: workloads in the Namespace run here as well, unless they are in an Envelope", one.index))
		}
	}
	return out
}

func gvkOf(s *shipper.ResourceSelector) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}
}

// notServed says which kind is not served, and what a user may have meant.
func (j *Judge) notServed(ctx context.Context, s *shipper.ResourceSelector, path *field.Path) *field.Error {
	gk := schema.GroupKind{Group: s.Group, Kind: s.Kind}.String()
	if s.Version != "" {
		served, err := j.Kinds.Find(ctx, schema.GroupKind{Group: s.Group, Kind: s.Kind}, "")
		switch {
		case err == nil:
			return field.Invalid(path.Child("version"), s.Version, "this API server serves "+gk+" in version "+served.Version+
				", and not in this one: leave version out")
		case !errors.Is(err, ErrNotServed):
			return field.Invalid(path.Child("version"), s.Version, "this API server does not serve "+gk+" in this version: leave version out")
		}
	}
	why := "this API server does not serve " + gk
	if near := j.near(ctx, s.Kind); near != "" {
		why += ": " + near
	} else if s.Group == "" {
		why += ": name its group in group, such as apps for Deployments"
	}
	return field.Invalid(path.Child("kind"), s.Kind, why)
}

// near says which served kind has a name, or that name as its plural; empty if none has.
func (j *Judge) near(ctx context.Context, kind string) string {
	known, err := j.Kinds.InNamespaces(ctx)
	if err != nil {
		return ""
	}
	for i := range known {
		k := &known[i]
		if !strings.EqualFold(k.Kind, kind) && !strings.EqualFold(k.Resource, kind) {
			continue
		}
		if k.Group == "" {
			return "did you mean kind: " + k.Kind + ", without a group?"
		}
		return "did you mean kind: " + k.Kind + ", group: " + k.Group + "?"
	}
	return ""
}

// UnknownReady warns of rules for kinds that this API server does not serve: a rule with a misspelt kind judges nothing.
func (j *Judge) UnknownReady(ctx context.Context, rules []shipper.ReadyRule) []string {
	if j == nil || j.Kinds == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	errs := make([]error, len(rules))
	each(len(rules), func(i int) {
		_, errs[i] = j.Kinds.Find(ctx, schema.GroupKind{Group: rules[i].Group, Kind: rules[i].Kind}, "")
	})
	var out []string
	for i, err := range errs {
		if !errors.Is(err, ErrNotServed) {
			continue
		}
		gk := schema.GroupKind{Group: rules[i].Group, Kind: rules[i].Kind}.String()
		text := fmt.Sprintf("ready[%d]: this API server does not serve %s: the rule judges manifests in Envelopes only", i, gk)
		if near := j.near(ctx, rules[i].Kind); near != "" {
			text += "; " + near
		}
		out = append(out, text)
	}
	return out
}

// resolveNamespace sets the namespace of an item, and refuses one that may not be placed.
func (j *Judge) resolveNamespace(i *item, own string) *field.Error {
	at := i.path()
	switch {
	case !i.kind.Namespaced && i.Namespace != "" && !i.isNamespace():
		return field.Forbidden(at.Child("namespace"), "objects of kind "+i.Kind+" have no namespace: leave it out")
	case i.kind.Namespaced:
		if i.namespace = i.Namespace; i.namespace == "" {
			i.namespace = own
		}
	}
	r := j.Policy.Refused(i.kind.GroupVersionKind, i.namespace, i.Name)
	switch {
	case r == nil:
		return nil
	case r.Field == "namespace" && i.Namespace == "":
		return field.Forbidden(at, fmt.Sprintf("content of namespace %s may not be placed: %s", i.namespace, r.Reason))
	default:
		return field.Forbidden(at.Child(r.Field), r.Reason)
	}
}

// ValidateReady compiles the rules of a namespace that say when objects are ready, if they changed.
func ValidateReady(ctx context.Context, namespace string, now, old *shipper.Resources) (field.ErrorList, error) {
	if old != nil && equality.Semantic.DeepEqual(now.Ready, old.Ready) {
		return nil, nil
	}
	var errs field.ErrorList
	for i, rule := range now.Ready {
		if rule.Expression == "" {
			continue // another check refuses it
		}
		err := bounds.Compile(ctx, namespace, func() error { return objects.CheckReady(ctx, rule, environment.NewExpressions) })
		switch {
		case errors.Is(err, boundedcel.ErrBusy):
			return nil, response.Later(err.Error(), time.Second)
		case err != nil:
			errs = append(errs, field.Invalid(readyPath.Index(i).Child("expression"), rule.Expression, err.Error()))
		}
	}
	return errs, nil
}
