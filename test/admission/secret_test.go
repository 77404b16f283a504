// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// The server answers to the Secret what it keeps from users without it.
func TestAuthorsMayGetTheSecret(t *testing.T) {
	t.Parallel()
	checkAuthors(t, namespace(t))
}

// checkAuthors has a user who may not get a Secret change each field of what sends it.
func checkAuthors(t *testing.T, ns string) {
	t.Helper()
	author := "author-of-" + ns
	create(t, admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "judge"}})
	meta := metav1.ObjectMeta{Namespace: ns, Name: "judge"}
	check := &shipper.Check{ObjectMeta: meta, Spec: shipper.CheckSpec{
		HTTP: &shipper.HTTPCheck{URL: "https://judge.example.com/", SecretName: "judge"},
		Pass: "response.json.ok == true",
	}}
	notification := &shipper.Notification{ObjectMeta: meta}
	notification.Spec.To.SecretName = "judge"
	edits := map[client.Object][]string{
		check: {
			// An oracle: the first letter of the answer, as the phase of a check that everybody may read.
			`{"spec":{"pass":"response.json.answer.startsWith(\"A\")"}}`,
			`{"spec":{"fail":"{\"a\": true}[response.json.answer]"}}`,
			`{"spec":{"args":[{"name":"guess","pattern":".*","default":"A"}]}}`,
			`{"spec":{"http":{"url":"https://judge.example.com/other"}}}`,
			`{"spec":{"http":{"method":"POST","body":"{}"}}}`,
			`{"spec":{"http":{"headers":{"X-Admin":"1"}}}}`,
			`{"spec":{"interval":"24h"}}`,
		},
		notification: {
			`{"spec":{"body":"\"a text of mine\""}}`,
			`{"spec":{"events":["Started"]}}`,
			`{"spec":{"format":"Slack"}}`,
			`{"spec":{"applications":{"matchLabels":{"team":"mine"}}}}`,
			`{"metadata":{"annotations":{"` + shipper.NotificationTestAnnotation + `":"1"}}}`, // sends a message
		},
	}
	mayNot := func(user string) refused {
		return refused{422, fmt.Sprintf("user %q may not get secrets/judge in %s", user, ns)}
	}
	for o := range edits {
		checkRefused(t, as(t, author).Create(t.Context(), o.DeepCopyObject().(client.Object)), mayNot(author))
	}
	create(t, admin,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"judge"}, Verbs: []string{"get"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{person(author)},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "judge"},
		})
	for o, patches := range edits {
		env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error {
			return as(t, author).Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
		})
		create(t, as(t, author), o)
		const unrelated = `{"metadata":{"labels":{"team":"mine"}}}`
		for _, text := range append(patches, unrelated) {
			patch := client.RawPatch(types.MergePatchType, []byte(text))
			err := as(t, "dev").Patch(t.Context(), o.DeepCopyObject().(client.Object), patch, client.DryRunAll)
			want := mayNot("dev")
			if text == unrelated { // the request stays the same
				want = refused{}
			}
			checkRefused(t, err, want)
			checkRefused(t, as(t, author).Patch(t.Context(), o.DeepCopyObject().(client.Object), patch, client.DryRunAll), refused{})
		}
	}
}
