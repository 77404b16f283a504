// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// builtin has the Go types of Kubernetes' own kinds, with the defaults that this package knows.
var builtin = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	metav1.AddToGroupVersion(s, metav1.Unversioned)
	addDefaults(s)
	addSelectors(s)
	return s
}()

var builtinCodecs = serializer.NewCodecFactory(builtin, serializer.WithStreamingCollectionEncodingToJSON())

// serveBuiltin makes the handlers of a kind of Kubernetes. Its fields are defaulted in part, and not validated: see defaults.go.
func serveBuiltin(k Kind) (*served, error) {
	strategy := builtinStrategy{ObjectTyper: builtin, NameGenerator: names.SimpleNameGenerator, kind: k}
	resource := k.resource().GroupResource()
	made := func(of runtime.Object, err error) runtime.Object {
		utilruntime.Must(err) // the kind is recognized
		return of
	}
	store := &registry.Store{
		NewFunc:     func() runtime.Object { return made(builtin.New(k.gvk())) },
		NewListFunc: func() runtime.Object { return made(builtin.New(k.listGVK())) },
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
		},
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: resource,
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ReturnDeletedObject:       k.Kind == "Pod" || k.Kind == "Service" || k.Kind == "ServiceAccount" || k.Kind == "PersistentVolumeClaim",
		TableConvertor:            rest.NewDefaultTableConvertor(resource),
	}
	if k.Kind == "Namespace" {
		store.ShouldDeleteDuringUpdate = func(_ context.Context, _ string, _, existing runtime.Object) bool {
			return len(existing.(*corev1.Namespace).Spec.Finalizers) == 0
		}
	}
	codec := builtinCodecs.LegacyCodec(k.gvk().GroupVersion())
	options := k.options(codec)
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: k.attributes}); err != nil {
		return nil, fmt.Errorf("making a registry: %w", err)
	}
	scope, err := builtinScope(k, "", "status")
	if err != nil {
		return nil, err
	}
	var main any = store
	if k.Kind == "Namespace" {
		main = namespaces{store}
	}
	out := &served{attributes: k.attributes, defaulter: builtin, converter: builtin, manager: scope.FieldManager}
	out.main = routes(store, main, scope)
	if k.Status {
		ofStatus := *store
		ofStatus.UpdateStrategy = builtinStatusStrategy{strategy}
		scope, err := builtinScope(k, "status", "spec")
		if err != nil {
			return nil, err
		}
		out.status = routes(nil, statusREST{&ofStatus}, scope)
	}
	return out, nil
}

// builtinScope is what handlers know of a kind, of whose fields some are reset by a request.
func builtinScope(k Kind, subresource, reset string) (*handlers.RequestScope, error) {
	scope := &handlers.RequestScope{
		Namer:           handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: k.Cluster},
		Serializer:      builtinCodecs,
		ParameterCodec:  clientgoscheme.ParameterCodec,
		Creater:         builtin, //nolint:misspell // the name in k8s.io/apiserver
		Convertor:       builtin,
		Defaulter:       builtin,
		Typer:           builtin,
		UnsafeConvertor: runtime.UnsafeObjectConvertor(builtin),
		Authorizer:      authorized{},
		TableConvertor:  rest.NewDefaultTableConvertor(k.resource().GroupResource()),

		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		Resource:                 k.resource(),
		Kind:                     k.gvk(),
		Subresource:              subresource,
		HubGroupVersion:          k.gvk().GroupVersion(),
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		MaxRequestBodyBytes:      3 << 20,
	}
	set := fieldpath.NewSet(fieldpath.MakePathOrDie(reset))
	if subresource == "status" && k.Kind == "Deployment" {
		set.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
	}
	resets := map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(k.groupVersion()): fieldpath.NewExcludeSetFilter(set)}
	if !k.Status {
		resets = nil
	}
	types, err := k.types(func() (managedfields.TypeConverter, error) { return applyconfigurations.NewTypeConverter(builtin), nil })
	if err != nil {
		return nil, err
	}
	scope.FieldManager, err = managedfields.NewDefaultFieldManager(types, builtin, builtin, builtin, k.gvk(), k.gvk().GroupVersion(),
		subresource, resets)
	if err != nil {
		return nil, fmt.Errorf("making a field manager: %w", err)
	}
	return scope, nil
}

// statusREST serves the status subresource.
type statusREST struct{ store *registry.Store }

func (r statusREST) New() runtime.Object { return r.store.New() }

func (r statusREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, o)
}

func (r statusREST) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	_ bool, o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, update, false, o)
}

// builtinStrategy is what the strategies of kube-apiserver's kinds have in common.
type builtinStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind
}

func part(o runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// counted is what a generation counts.
func counted(o runtime.Object) reflect.Value {
	if spec := part(o, "Spec"); spec.IsValid() {
		return spec
	}
	copied := reflect.ValueOf(o.DeepCopyObject()).Elem() // without a spec everything but metadata counts
	copied.FieldByName("ObjectMeta").SetZero()
	copied.FieldByName("TypeMeta").SetZero()
	return copied
}

func (s builtinStrategy) NamespaceScoped() bool { return !s.kind.Cluster }

func (s builtinStrategy) PrepareForCreate(ctx context.Context, o runtime.Object) {
	if s.kind.Status {
		part(o, "Status").SetZero()
	}
	begin(ctx, o)
	if m, ok := o.(metav1.Object); ok && s.kind.Counted {
		m.SetGeneration(1)
	}
}

func (s builtinStrategy) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	if s.kind.Status {
		part(o, "Status").Set(part(old, "Status"))
	}
	keep(o, old)
	now, okNow := o.(metav1.Object)
	before, okBefore := old.(metav1.Object)
	if okNow && okBefore && s.kind.Counted {
		now.SetGeneration(before.GetGeneration())
		if !equality.Semantic.DeepEqual(counted(o).Interface(), counted(old).Interface()) {
			now.SetGeneration(before.GetGeneration() + 1)
		}
	}
}

func (s builtinStrategy) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	return s.kind.named(o)
}

func (builtinStrategy) ValidateUpdate(_ context.Context, o, old runtime.Object) field.ErrorList {
	return immutable(o, old)
}

// ValidateDeclaratively removes duplicates, as the validation of kube-apiserver's own kinds does. It is a part of
// rest.DeclarativeValidationStrategy.
func (builtinStrategy) ValidateDeclaratively(
	_ context.Context, _, _ runtime.Object, errs field.ErrorList, _ operation.Type, _ rest.DeclarativeValidationConfig,
) field.ErrorList {
	var out field.ErrorList
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(known *field.Error) bool { return known.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}

// DeclarativeValidationConfig is a part of rest.DeclarativeValidationStrategy.
func (builtinStrategy) DeclarativeValidationConfig(context.Context, runtime.Object, runtime.Object) rest.DeclarativeValidationConfig {
	return rest.DeclarativeValidationConfig{}
}

func (builtinStrategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

func (builtinStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (builtinStrategy) Canonicalize(runtime.Object) {}

func (s builtinStrategy) AllowCreateOnUpdate(context.Context) bool { return s.kind.Kind == "Lease" }

func (s builtinStrategy) AllowUnconditionalUpdate(context.Context) bool {
	return s.kind.Kind != "Lease"
}

// DefaultGarbageCollectionPolicy is a part of rest.GarbageCollectionDeleteStrategy.
func (builtinStrategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

// CheckGracefulDelete lets a Pod on a node end before it is removed. It is a part of rest.RESTGracefulDeleteStrategy.
func (builtinStrategy) CheckGracefulDelete(_ context.Context, o runtime.Object, options *metav1.DeleteOptions) bool {
	pod, ok := o.(*corev1.Pod)
	if !ok || options == nil {
		return false
	}
	period := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch {
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	options.GracePeriodSeconds = &period
	return true
}

// builtinStatusStrategy changes status alone.
type builtinStatusStrategy struct{ builtinStrategy }

func (s builtinStatusStrategy) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	status := reflect.New(part(o, "Status").Type()).Elem()
	status.Set(part(o, "Status"))
	if spec := part(o, "Spec"); spec.IsValid() {
		spec.Set(part(old, "Spec"))
	}
	if s.kind.Kind == "Deployment" {
		o.(metav1.Object).SetLabels(old.(metav1.Object).GetLabels())
	}
	part(o, "Status").Set(status)
}

func (builtinStatusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
