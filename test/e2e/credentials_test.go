// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestCredentialsOfTheNamespaceOpenItsRepository is told by somebody who may edit Applications and, at first, read no Secret.
func TestCredentialsOfTheNamespaceOpenItsRepository(t *testing.T) {
	const password = "n0body-sees-this"
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); got != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		world.charts.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	onTwoClusters(t, func(s *story) {
		s.must("creating the secret", world.management.Create(s.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "opener"}, Type: corev1.SecretTypeBasicAuth,
			StringData: map[string]string{"username": "ann", "password": password},
		}))
		s.must("letting Shipper read it", world.management.Create(s.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: shipper.NamespaceReader},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.NamespaceReader},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
			}},
		}))
		s.may("system:serviceaccount:"+shipper.SystemNamespace+":"+shipper.ManagementServiceAccount,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"opener"}, Verbs: []string{"get"}})
		app := s.application("~0.0", 1, allIn)
		app.Spec.Template.Chart.RepoURL = guarded.URL + "/charts"
		app.Spec.Template.Chart.Credentials.SecretName = "opener"
		dev, _ := s.as("dev")
		s.refused("naming a secret of others", dev.user.Create(s.ctx, app.DeepCopy()),
			"credentials.secretName: Forbidden: dev may not get Secret "+s.namespace+"/opener")
		owner, heard := s.as("owner", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"opener"}, Verbs: []string{"get"},
		})
		owner.applies(app)
		rel := s.release(0)
		s.completes(rel)
		s.readyPods(rel, 1)
		said := append(heard.about(), world.pod.Reconciler.Tail(), world.pod.Webhook.Tail())
		for _, list := range []client.ObjectList{
			&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &eventsv1.EventList{},
		} {
			s.must("listing what was written", world.management.List(s.ctx, list, client.InNamespace(s.namespace)))
			text, err := json.Marshal(list)
			s.must("writing it down", err)
			said = append(said, string(text))
		}
		for _, text := range said {
			if strings.Contains(text, password) {
				t.Errorf("the password was told: %s", text)
			}
		}
	})
}
