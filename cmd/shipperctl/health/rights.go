// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// atOnce is how many questions about rights are asked at the same time.
const atOnce = 10

// The roles of Shipper's accounts in the manifests.
const (
	managementRole  = "shipper:management-cluster"
	applicationRole = "shipper:application-cluster"
	// globalBlocksRole is the Role of users in the namespace of global RolloutBlocks.
	globalBlocksRole = "shipper:global-blocks"
)

// right is a verb on a resource, in all namespaces if it names none.
type right struct {
	namespace, group, resource, name, verb string
}

// String is the right as `kubectl auth can-i` takes it.
func (r right) String() string {
	resource := r.resource
	if r.group != "" {
		kind, sub, found := strings.Cut(resource, "/")
		if resource = kind + "." + r.group; found {
			resource += "/" + sub
		}
	}
	if r.name != "" {
		resource += " named " + r.name
	}
	if r.namespace != "" {
		resource += " in " + r.namespace
	}
	return resource
}

// attributes are those of an access review.
func (r right) attributes() *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: sub, Name: r.name,
	}
}

func expand(rules []rbacv1.PolicyRule, namespace string) []right {
	var out []right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						out = append(out, right{namespace, group, resource, name, verb})
					}
				}
			}
		}
	}
	return out
}

// rightsOf are those of a ClusterRole of the manifests, and of the Role of the same name in Shipper's namespace if inNamespace
// is not empty.
func rightsOf(name, inNamespace string) ([]right, error) {
	var out []right
	for _, kind := range []string{"ClusterRole", "Role"} {
		namespace := ""
		if kind == "Role" {
			if namespace = inNamespace; namespace == "" {
				continue
			}
		}
		o, err := manifests.Object(manifests.RBAC, kind, name)
		if err != nil {
			return nil, err
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind, name, err)
		}
		out = append(out, expand(role.Rules, namespace)...)
	}
	return out, nil
}

// missing asks about each right, and returns those that an account does not have.
func missing(ctx context.Context, rights []right, ask func(context.Context, right) (bool, error)) ([]right, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var mu sync.Mutex
	var out []right
	for _, r := range rights {
		group.Go(func() error {
			allowed, err := ask(ctx, r)
			if err == nil && !allowed {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, r)
			}
			return err
		})
	}
	return out, group.Wait()
}

// allowed asks whether a user has a right; nil is the client's own.
func allowed(c client.Client, of *authorizationv1.SubjectAccessReviewSpec) func(context.Context, right) (bool, error) {
	return func(ctx context.Context, r right) (bool, error) {
		self := &authorizationv1.SelfSubjectAccessReview{}
		self.Spec.ResourceAttributes = r.attributes()
		var review client.Object = self
		status := &self.Status
		if of != nil {
			other := &authorizationv1.SubjectAccessReview{Spec: *of}
			other.Spec.ResourceAttributes = r.attributes()
			review, status = other, &other.Status
		}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking about rights: %w", err)
		}
		return status.Allowed, nil
	}
}

// list names rights, those to one kind together.
func list(rights []right) string {
	verbs := map[string][]string{}
	for _, r := range rights {
		verbs[r.String()] = append(verbs[r.String()], r.verb)
	}
	var out []string
	for what, may := range verbs {
		slices.SortFunc(may, func(a, b string) int { return cmp.Compare(a, b) })
		out = append(out, strings.Join(slices.Compact(may), ",")+" "+what)
	}
	slices.SortFunc(out, func(a, b string) int {
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	return strings.Join(out, "\n")
}

func (f *Fleet) rights(ctx context.Context) []Finding {
	return append(f.accountRights(ctx), f.userRights(ctx)...)
}

func narrowed(subjects []rbacv1.Subject) bool {
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.GroupKind && s.Name == user.AllAuthenticated
	})
}

func (f *Fleet) accountRights(ctx context.Context) []Finding {
	wanted, err := rightsOf(managementRole, f.Namespace)
	if err != nil {
		return []Finding{unreadable("the manifests", err)}
	}
	lacks, err := missing(ctx, wanted, allowed(f.Client, &authorizationv1.SubjectAccessReviewSpec{
		User:   serviceaccount.MakeUsername(f.Namespace, f.ServiceAccount),
		Groups: append(serviceaccount.MakeGroupNames(f.Namespace), user.AllAuthenticated),
	}))
	switch {
	case err != nil:
		return []Finding{unreadable("what the account "+f.ServiceAccount+" may do", err)}
	case len(lacks) == 0:
		return nil
	}
	return []Finding{broken(fmt.Sprintf("the account %s/%s may not:\n%s", f.Namespace, f.ServiceAccount, list(lacks)),
		"Shipper cannot do its work in the management cluster", setUp)}
}

// userRights returns a warning if authenticated users may not read global RolloutBlocks. An operator may have restricted that.
func (f *Fleet) userRights(ctx context.Context) []Finding {
	binding := &unstructured.Unstructured{}
	binding.SetAPIVersion("admissionregistration.k8s.io/v1")
	binding.SetKind("ValidatingAdmissionPolicyBinding")
	binding.SetName("global-blocks." + shipper.GroupName)
	live, err := f.live(ctx, binding)
	if err != nil {
		return []Finding{unreadable("which namespace has the global RolloutBlocks", err)}
	}
	namespace := shipper.GlobalBlocksNamespace
	if live != nil {
		if named, found, _ := unstructured.NestedString(live.Object, "spec", "paramRef", "namespace"); found {
			namespace = named
		}
	}
	blocks := expand([]rbacv1.PolicyRule{{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"rolloutblocks"}, Verbs: []string{"get", "list", "watch"},
	}}, namespace)
	lacks, err := missing(ctx, blocks, allowed(f.Client, &authorizationv1.SubjectAccessReviewSpec{Groups: []string{user.AllAuthenticated}}))
	switch {
	case err != nil:
		return []Finding{unreadable("what users may do", err)}
	case len(lacks) == 0:
		return nil
	}
	var bound rbacv1.RoleBinding
	err = f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: globalBlocksRole}, &bound)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return []Finding{unreadable("who may read global blocks", err)}
	case narrowed(bound.Subjects):
		return nil
	}
	return []Finding{warning("the group "+user.AllAuthenticated+" may not:\n"+list(lacks),
		"developers cannot read a global RolloutBlock that stops their rollouts",
		setUp+"; it keeps an existing RoleBinding "+globalBlocksRole+": add your developers to its subjects")}
}
