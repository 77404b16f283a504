// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// attacker is a user with every right on Shipper's kinds in one namespace that RBAC can grant, subresources included, and
// with the role `edit`, and with no right elsewhere.
type attacker struct {
	*user
	namespace string
	raw       rest.Interface
}

func newAttacker(t *testing.T, namespace string) *attacker {
	t.Helper()
	name := "mallory-of-" + namespace
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	create(t, admin,
		&rbacv1.Role{ObjectMeta: meta("all-of-shipper"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{shipper.GroupName}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: meta("all-of-shipper"), Subjects: subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all-of-shipper",
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta("edit"), Subjects: subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit",
		}})
	m := &attacker{user: inGroups(t, name), namespace: namespace}
	config := rest.CopyConfig(management.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	config.WarningHandler = rest.NoWarnings{}
	config.GroupVersion, config.APIPath = &shipper.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	var err error
	if m.raw, err = rest.RESTClientFor(config); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "RBAC to grant the attacker's rights", func(ctx context.Context) error {
		return m.List(ctx, &shipper.ApplicationList{}, client.InNamespace(namespace))
	})
	return m
}

// attempt is one request of an attack.
type attempt func(context.Context) error

// on returns the victim for one object of the namespace.
func (m *attacker) on(o client.Object) victim { return victim{m, o} }

// victim is an object that an attacker sends requests about.
type victim struct {
	m *attacker
	o client.Object
}

// path is the URL path of the object, or of a subresource.
func (v victim) path(subresource []string) []string {
	path := []string{"/apis", shipper.GroupName, shipper.GroupVersion.Version, "namespaces", v.m.namespace}
	return append(append(path, resourceOf(v.o), v.o.GetName()), subresource...)
}

// patch sends body as it is, which no client library would do.
func (v victim) patch(how types.PatchType, body string, subresource ...string) attempt {
	return func(ctx context.Context) error {
		return v.m.raw.Patch(how).AbsPath(v.path(subresource)...).Body([]byte(body)).Do(ctx).Error()
	}
}

func (v victim) merge(body string, subresource ...string) attempt {
	return v.patch(types.MergePatchType, body, subresource...)
}

// apply applies body server-side as manager, by force.
func (v victim) apply(manager, body string, subresource ...string) attempt {
	body = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s`, shipper.GroupVersion, kindOf(v.o), strings.TrimPrefix(body, "{"))
	return func(ctx context.Context) error {
		return v.m.raw.Patch(types.ApplyYAMLPatchType).AbsPath(v.path(subresource)...).
			Param("fieldManager", manager).Param("force", "true").Body([]byte(body)).Do(ctx).Error()
	}
}

// replace sends the object as it is now, changed by edits.
func (v victim) replace(edits ...func(*unstructured.Unstructured)) attempt {
	return func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(shipper.GroupVersion.WithKind(kindOf(v.o)))
		if err := v.m.Get(ctx, client.ObjectKeyFromObject(v.o), u); err != nil {
			return err
		}
		for _, edit := range edits {
			edit(u)
		}
		return v.m.Update(ctx, u)
	}
}

// create makes another object of the kind: the same, changed by edits.
func (v victim) create(edits ...func(client.Object)) attempt {
	return func(ctx context.Context) error {
		o := sibling(v.o)
		for _, edit := range edits {
			edit(o)
		}
		return v.m.Create(ctx, o)
	}
}

func (v victim) remove(options ...client.DeleteOption) attempt {
	return func(ctx context.Context) error { return v.m.Delete(ctx, copyOf(v.o), options...) }
}

func copyOf(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }

// sibling is o under another name, as it would be created.
func sibling(o client.Object) client.Object {
	o = copyOf(o)
	o.SetName("another")
	o.SetUID("")
	o.SetResourceVersion("")
	return o
}

// annotations is a patch of annotations, `key: value` each, with more fields of the object.
func annotations(pairs string, more ...string) string {
	return object(`"metadata":{"annotations":{`+pairs+`}}`, more...)
}

func labels(pairs string, more ...string) string {
	return object(`"metadata":{"labels":{`+pairs+`}}`, more...)
}

func object(field string, more ...string) string {
	return "{" + strings.Join(append([]string{field}, more...), ",") + "}"
}

func kindOf(o client.Object) string {
	gvks, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return err.Error()
	}
	return gvks[0].Kind
}

func resourceOf(o client.Object) string { return strings.ToLower(kindOf(o)) + "s" }

// state is the part of an object that only Shipper may change, or a user who visibly edits the Application.
type state struct {
	Spec                any
	Labels, Annotations map[string]string
	Owners              []metav1.OwnerReference
}

// stateOf reads the state of all of Shipper's objects in namespaces, by kind and name.
func stateOf(t *testing.T, namespaces ...string) map[string]state {
	t.Helper()
	out := map[string]state{}
	for _, kind := range []string{
		"Application", "Release", "InstallationTarget", "CapacityTarget", "TrafficTarget", "RolloutBlock",
	} {
		for _, namespace := range namespaces {
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind + "List"))
			if err := admin.List(t.Context(), all, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for _, o := range all.Items {
				annotations := map[string]string{}
				for key, value := range o.GetAnnotations() {
					if strings.HasPrefix(key, shipper.GroupName+"/") {
						annotations[key] = value
					}
				}
				out[fmt.Sprintf("%s %s/%s", kind, namespace, o.GetName())] = state{
					Spec: o.Object["spec"], Labels: o.GetLabels(), Annotations: annotations, Owners: o.GetOwnerReferences(),
				}
			}
		}
	}
	return out
}

// attack is an attempt and the refusal that it should get; the zero refusal is for requests that succeed without effect.
type attack struct {
	try  attempt
	want refused
}

// comesToNothing makes every attempt and fails if it changed the state of an object in namespaces.
func comesToNothing(t *testing.T, attacks map[string]attack, namespaces ...string) {
	t.Helper()
	for sentence, a := range attacks {
		t.Run(sentence, func(t *testing.T) {
			before := stateOf(t, namespaces...)
			err := a.try(t.Context())
			if diff := cmp.Diff(before, stateOf(t, namespaces...)); diff != "" {
				t.Errorf("it changed (-before +after):\n%s\nthe answer was: %v", diff, err)
			}
			checkRefused(t, err, a.want)
		})
	}
}

// denied returns nil if err is a refusal by RBAC.
func denied(err error) error {
	if apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook") {
		return nil
	}
	return errors.Join(errors.New("this was not refused by RBAC"), err)
}

// audits lists the completed requests about objects in namespace in the API server's audit log.
func audits(t *testing.T, namespace string) iter.Seq[*auditv1.Event] {
	t.Helper()
	file, err := os.Open(management.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*auditv1.Event) bool) {
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			event := &auditv1.Event{}
			if json.Unmarshal(lines.Bytes(), event) != nil || event.Stage != auditv1.StageResponseComplete ||
				event.ObjectRef == nil || event.ObjectRef.Namespace != namespace {
				continue
			}
			if !yield(event) {
				return
			}
		}
	}
}
