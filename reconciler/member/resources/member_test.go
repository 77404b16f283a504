// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// member is an application cluster in memory. Its API server is that of controller-runtime's fake client, which has no dry run and no UIDs.
type member struct {
	t      *testing.T
	admin  client.WithWatch
	live   client.Reader
	faulty client.Client
	// byGrant writes as the granted account.
	byGrant client.Client
	mapper  *meta.DefaultRESTMapper
	claim   error
	// lives counts requests that no cache answers.
	lives atomic.Int64

	mu     sync.Mutex
	writes []string
	// left is how many writes succeed before the process dies; negative for ever.
	left int
	// denied are kinds that Shipper's account may not write.
	denied map[string]bool
	// granted is what the granted account may write; escalates are roles with more rights than it has. Each is a kind and a name.
	granted, escalates map[string]bool
	// unmade is a namespace that does not exist in the cluster; empty if all do.
	unmade string
	// late is true while the cache that health is read from has the objects as they were before the last write.
	late bool
	uids int
}

var errKilled = errors.New("killed")

func newMember(t *testing.T) *member {
	m := &member{t: t, left: -1, mapper: meta.NewDefaultRESTMapper(nil), denied: map[string]bool{}}
	m.granted, m.escalates = map[string]bool{}, map[string]bool{}
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "PersistentVolumeClaim", "Endpoints"} {
		m.mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		m.mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.mapper.Add(definition, meta.RESTScopeRoot)
	own := runtime.NewScheme()
	if err := scheme.AddToScheme(own); err != nil {
		t.Fatal(err)
	}
	m.admin = fake.NewClientBuilder().WithScheme(own).WithRESTMapper(m.mapper).WithReturnManagedFields().Build()
	m.live = interceptor.NewClient(m.admin, interceptor.Funcs{Get: getScaled})
	m.faulty = interceptor.NewClient(m.admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return m.write("create", o, func() error {
				m.setUID(o)
				return c.Create(ctx, o, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return m.write("patch", o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return m.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Apply: m.apply,
	})
	m.byGrant = m.newGranted()
	return m
}

// autoscaler is a field manager whose writes are those of the subresource scale, which the fake client does not record.
const autoscaler = "autoscaler"

func getScaled(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Get(ctx, key, o, opts...)
	managed := o.GetManagedFields()
	for i := range managed {
		if managed[i].Manager == autoscaler {
			managed[i].Subresource = "scale"
		}
	}
	o.SetManagedFields(managed)
	return err
}

func (m *member) setUID(o client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uids++
	o.SetUID(types.UID(fmt.Sprint("uid-", m.uids)))
}

// write counts a write, unless the process is dead.
func (m *member) write(verb string, o client.Object, do func() error) error {
	m.mu.Lock()
	dead := m.left == 0
	if m.left > 0 {
		m.left--
	}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
	}
	denied := m.denied[kind]
	if !dead && !denied {
		m.writes = append(m.writes, strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, kind, client.ObjectKeyFromObject(o))))
	}
	m.mu.Unlock()
	switch {
	case dead:
		return errKilled
	case denied:
		return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, o.GetName(),
			errors.New(`User "shipper" cannot patch resource "x" in API group ""`))
	case m.unmade != "" && o.GetNamespace() == m.unmade:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, m.unmade)
	}
	return do()
}

func (m *member) apply(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	o, ok := ac.(interface {
		client.Object
		UnstructuredContent() map[string]any
		SetUnstructuredContent(content map[string]any)
	})
	if !ok {
		m.t.Fatalf("%T is no object", ac)
	}
	var all client.ApplyOptions
	all.ApplyOptions(opts)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	err := m.admin.Get(ctx, client.ObjectKeyFromObject(o), live)
	if len(all.DryRun) > 0 {
		if err != nil {
			return err
		}
		o.SetUnstructuredContent(m.merged(live.Object, o.UnstructuredContent()))
		return nil
	}
	return m.write("apply", o, func() error {
		if err == nil && o.GetResourceVersion() != "" && o.GetResourceVersion() != live.GetResourceVersion() {
			return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("changed"))
		}
		if applied := c.Apply(ctx, ac, opts...); applied != nil || o.GetUID() != "" {
			return applied
		}
		made := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.UnstructuredContent())}
		m.setUID(made)
		if err := m.admin.Update(ctx, made, client.FieldOwner(shipper.FieldOwner)); err != nil {
			return err
		}
		o.SetUnstructuredContent(made.Object)
		return nil
	})
}

// merged is live with the fields of applied.
func (m *member) merged(live, applied map[string]any) map[string]any {
	a, errA := json.Marshal(live)
	b, errB := json.Marshal(applied)
	raw, errM := jsonpatch.MergePatch(a, b)
	u := &unstructured.Unstructured{}
	if err := errors.Join(errA, errB, errM, u.UnmarshalJSON(raw)); err != nil {
		m.t.Fatal(err)
	}
	return u.Object
}

func (m *member) Client() client.Client         { return m.faulty }
func (m *member) Granted() client.Client        { return m.byGrant }
func (m *member) Live() client.Reader           { m.lives.Add(1); return m.live }
func (m *member) Session() uint64               { return 1 }
func (m *member) Claim(*corev1.ConfigMap) error { return m.claim }
func (m *member) APIVersions() []string {
	return []string{"apps/v1", "v1", "v1/ConfigMap", "v1/Namespace", "v1/Pod", "v1/Secret", "v1/ServiceAccount", "v1/Scale"}
}

func (m *member) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (m *member) LiveMetadata(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	m.lives.Add(1)
	return m.metadata(ctx, gvk, key)
}

func (m *member) metadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	if _, err := m.Mapping(gvk); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{} // the fake client would register an unknown kind as one with nothing but metadata
	u.SetGroupVersionKind(gvk)
	if err := m.admin.Get(ctx, key, u); err != nil {
		return nil, err
	}
	out := &metav1.PartialObjectMetadata{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

func (m *member) Metadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	out, err := m.metadata(ctx, gvk, key)
	if err == nil && out.Labels[shipper.AppLabel] == "" && gvk.Kind != "Namespace" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind}, key.Name)
	}
	return out, err
}

func (m *member) Health(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, fleet.Health, error) {
	out, err := m.Metadata(ctx, gvk, key)
	if err != nil {
		return nil, fleet.Health{}, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	if err := m.admin.Get(ctx, key, u); err != nil {
		return nil, fleet.Health{}, err
	}
	if m.late {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, shipper.InstalledDigestAnnotation, "before")
	}
	if gvk == configMap {
		return out, fleet.HealthOf(out), nil
	}
	return out, fleet.HealthOf(u), nil
}
