// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// selected is the label of the ConfigMaps that Placing selects.
var selected = map[string]string{"place": "it"}

// Placing is an Application that places the ConfigMaps of Keeps, and more, on clusters of the regions given.
func (r *Rollout) Placing(regions []string, more ...shipper.ResourceSelector) *shipper.Application {
	app := r.Env.Application(r.Namespace, r.App, "", 1, nil, regions...)
	app.Spec.RevisionHistoryLimit = ptr.To[int32](10)
	app.Spec.Template.Chart, app.Spec.Template.Values = shipper.Chart{}, nil
	app.Spec.Template.Resources = &shipper.Resources{
		Select: append([]shipper.ResourceSelector{{
			Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: selected},
		}}, more...),
		Removal: shipper.RemovalAll,
	}
	return app
}

// Keeps writes a ConfigMap that Placing selects, in the management cluster.
func (r *Rollout) Keeps(name, value string) {
	r.Helper()
	content := r.Content(name, value)
	err := r.Env.Management.Create(r.Ctx, content)
	if apierrors.IsAlreadyExists(err) {
		err = r.Env.Management.Update(r.Ctx, content)
	}
	r.Must("writing "+name, err)
}

// Content is the ConfigMap that Keeps writes.
func (r *Rollout) Content(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: selected},
		Data:       map[string]string{"k": value},
	}
}

// LetsSelect lets Shipper read and keep what is in the test's namespace, and waits until the API server knows.
func (r *Rollout) LetsSelect() {
	r.Helper()
	for _, role := range []string{shipper.ResourceSelectorRole, shipper.ValuesKeeper} {
		r.Must("binding "+role, r.Env.Management.Create(r.Ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
			}},
		}))
	}
	r.Eventually("whether Shipper may list ConfigMaps", "true", func() (string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Resource: "configmaps", Verb: "list"},
		}}
		err := r.Env.Management.Create(r.Ctx, review)
		return fmt.Sprint(review.Status.Allowed), err
	})
}
