// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// reconcilerUser is the user that the reconciler writes as.
const reconcilerUser = "system:serviceaccount:shipper-system:shipper-mgmt-cluster"

// user is a client of the API server that collects its warnings.
type user struct {
	client.Client
	name string

	mu     sync.Mutex
	warned []string
}

// editors may edit all of Shipper's kinds in all namespaces.
const editors = "editors"

// as returns a client for a member of the group editors.
func as(t *testing.T, name string) *user {
	t.Helper()
	return inGroups(t, name, editors)
}

// inGroups returns a client for a user with the rights of these groups.
func inGroups(t *testing.T, name string, groups ...string) *user {
	t.Helper()
	u := &user{name: name}
	config := env.As(management.Config, name, groups...)
	config.WarningHandler = u
	var err error
	if u.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return u
}

// HandleWarningHeader is rest.WarningHandler.
func (u *user) HandleWarningHeader(_ int, _ string, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warned = append(u.warned, text)
}

// warnings returns the warnings since the last call.
func (u *user) warnings() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.warned
	u.warned = nil
	return out
}

// grant grants a user a verb on a resource of Shipper's.
func grant(t *testing.T, name, verb, resource string) {
	t.Helper()
	id := strings.NewReplacer(":", "-", " ", "-", "/", "-").Replace(fmt.Sprintf("test-%s-%s-%s", name, verb, resource))
	create(t, admin,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: id}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{shipper.GroupName}, Resources: []string{resource}, Verbs: []string{verb},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: id},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: id},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		})
}

// editorsEdit lets editors read and write all of Shipper's kinds, so that only the webhook refuses their requests.
func editorsEdit(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-editors-edit"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: editors}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// create creates objects and deletes them after the test.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
		cleanUp(t, o)
	}
}

// cleanUp deletes o after the test, whatever the test did to it.
func cleanUp(t *testing.T, o client.Object) {
	t.Helper()
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing %T %s: %v", o, o.GetName(), err)
		}
	})
}

// namespace creates a namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gate-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// refused is the expected refusal: its code, and a part of its message.
type refused struct {
	code    int32
	message string
}

// checkRefused compares err with want; the zero value requires that err is nil.
func checkRefused(t *testing.T, err error, want refused) {
	t.Helper()
	if want.code == 0 {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want a refusal with code %d: %s", err, want.code, want.message)
	}
	if got := status.Status(); got.Code != want.code || !strings.Contains(got.Message, want.message) {
		t.Fatalf("refused with %d: %s\nwant %d: …%s…", got.Code, got.Message, want.code, want.message)
	}
}
