// SPDX-License-Identifier: Apache-2.0

// Package check validates Checks, and the checks that strategies name: queries parse, expressions compile, servers are listed, and the
// author may get the Secret that is named. It requests nothing from these servers.
package check

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/check/definition"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Check"
	resource = "checks"
	// maxListed bounds the Applications that a message lists.
	maxListed = 5
)

var specPath = field.NewPath("spec")

// State has the objects related to a Check.
type State interface {
	// NamingCheck are the Releases that are the newest of their Application and name the Check, sorted by namespace and Application.
	NamingCheck(key types.NamespacedName) ([]*shipper.Release, error)
	NamespaceTerminating(namespace string) bool
	Clusters() []shipper.Cluster
}

// Webhook validates Checks.
type Webhook struct {
	State State
	Authz authz.Authorizer
	// Outgoing is the policy for servers that Checks name. Nil: they may name none.
	Outgoing *outward.Policy
	// Shared is the namespace with the Checks that all namespaces may name; empty: there is none.
	Shared string
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.Check](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		return w.validateDelete(old)
	}
	if old != nil && !protected.IsController(req.UserInfo.Username) && protected.OwnerAdded(&old.ObjectMeta, &now.ObjectMeta) {
		if err := w.validateDelete(old); err != nil { // the garbage collector would delete it with the owner
			return err
		}
	}
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	errs, err := definition.Validate(ctx, &now.Spec, now.Namespace, definition.Servers{Outgoing: w.Outgoing})
	if err != nil {
		return err
	}
	if err := response.Invalidate(kind, now.Name, errs); err != nil {
		return err
	}
	// Compiling an expression takes memory: a user without a right to the Secret does not cause it.
	if err := w.permitSecret(ctx, req, now); err != nil {
		return err
	}
	compile := func(text string) error {
		return expression.Check(ctx, text, definition.Inputs(&now.Spec), environment.NewExpressions)
	}
	if errs, err = definition.Expressions(ctx, &now.Spec, now.Namespace, compile); err != nil {
		return err
	}
	if err := response.Invalidate(kind, now.Name, errs); err != nil {
		return err
	}
	response.WarnOfNulls(a, now, old, response.NullGate, "spec")
	if why := rules.WithoutServer(&now.Spec, w.State.Clusters()); why != "" {
		a.Warn("%s", why)
	}
	if warn(a, &now.Spec); old == nil {
		return nil
	}
	return w.warnOfUse(ctx, a, now)
}

// validateDelete refuses the deletion of a Check that Applications name: their rollouts would not go on.
func (w *Webhook) validateDelete(old *shipper.Check) error {
	if w.State.NamespaceTerminating(old.Namespace) {
		return nil
	}
	naming, err := w.State.NamingCheck(keyOf(old))
	if err != nil || len(naming) == 0 {
		return err
	}
	return response.Forbid(resource, old.Name, nameUsers(naming)+": take it out of their strategies first")
}

func keyOf(c *shipper.Check) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// applicationOf is the Application of a Release, as namespace/name.
func applicationOf(rel *shipper.Release) string {
	return rel.Namespace + "/" + rel.Labels[shipper.AppLabel]
}

// nameUsers says that the Applications of Releases name a Check.
func nameUsers(newest []*shipper.Release) string {
	naming := make([]string, len(newest))
	for i, rel := range newest {
		naming[i] = applicationOf(rel)
	}
	if len(naming) == 1 {
		return fmt.Sprintf("Application %s names it", naming[0])
	}
	if len(naming) > maxListed {
		return fmt.Sprintf("Applications %s and %d more name it", strings.Join(naming[:maxListed], ", "), len(naming)-maxListed)
	}
	return fmt.Sprintf("Applications %s name it", strings.Join(naming, ", "))
}

// secretOf is the Secret that a Check names, and its path; empty when it names none.
func secretOf(spec *shipper.CheckSpec) (string, *field.Path) {
	switch {
	case spec.Prometheus != nil:
		return spec.Prometheus.SecretName, specPath.Child("prometheus", "secretName")
	case spec.HTTP != nil:
		return spec.HTTP.SecretName, specPath.Child("http", "secretName")
	}
	return "", nil
}

// permitSecret refuses a Secret that the user may not get, whatever field changes: by another request the user could have it sent to a
// server, and by another expression find out the answer bit by bit.
func (w *Webhook) permitSecret(ctx context.Context, req *admission.Request, now *shipper.Check) error {
	name, path := secretOf(&now.Spec)
	if name == "" {
		return nil
	}
	refused, err := authz.SecretRefused(ctx, w.Authz, req.UserInfo, types.NamespacedName{Namespace: now.Namespace, Name: name})
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case refused != "":
		return response.Invalidate(kind, now.Name, field.ErrorList{field.Forbidden(path, refused)})
	}
	return nil
}
