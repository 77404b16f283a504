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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
