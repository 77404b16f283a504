// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// serveCustom makes the handlers of a kind that a CustomResourceDefinition defines, from the packages that kube-apiserver serves it with.
func serveCustom(k Kind) (*served, error) {
	crd := k.definition()
	version := crd.Spec.Versions[0]
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	shape, err := structural.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	shape = shape.DeepCopy()
	if err := defaulting.PruneDefaults(shape); err != nil {
		return nil, fmt.Errorf("pruning defaults: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var statusValidator validation.SchemaValidator
	if k.Status {
		status = &apiextensions.CustomResourceSubresourceStatus{}
		if s, ok := internal.OpenAPIV3Schema.Properties["status"]; ok {
			if statusValidator, _, err = validation.NewSchemaValidator(&s); err != nil {
				return nil, fmt.Errorf("compiling the schema of status: %w", err)
			}
		}
	}
	table, err := tableconvertor.New(version.AdditionalPrinterColumns)
	if err != nil {
		return nil, fmt.Errorf("reading columns: %w", err)
	}
	typer := unstructuredTyper{}
	resource := k.resource().GroupResource()
	singular := schema.GroupResource{Group: k.Group, Resource: crd.Spec.Names.Singular}
	strategy := customresource.NewStrategy(
		typer, !k.Cluster, k.gvk(), validator, statusValidator, shape, status, nil, version.SelectableFields)
	storage, err := customresource.NewStorage(resource, singular, k.gvk(), k.listGVK(), strategy,
		k.options(unstructured.UnstructuredJSONScheme), nil, table, nil)
	if err != nil {
		return nil, fmt.Errorf("making a registry: %w", err)
	}
	scope, err := customScope(k, crd, shape, typer)
	if err != nil {
		return nil, err
	}
	scope.TableConvertor = storage.CustomResource
	converter, err := k.types(func() (managedfields.TypeConverter, error) { return typesOf(k, crd) })
	if err != nil {
		return nil, err
	}
	scope, err = customManaged(scope, converter, storage.CustomResource.GetResetFields(), "")
	if err != nil {
		return nil, err
	}
	out := &served{attributes: strategy.GetAttrs, defaulter: scope.Defaulter, converter: scope.Convertor, manager: scope.FieldManager}
	out.main = routes(storage.CustomResource.Store, storage.CustomResource, &scope)
	if storage.Status != nil {
		scope, err := customManaged(scope, converter, storage.Status.GetResetFields(), "status")
		if err != nil {
			return nil, err
		}
		out.status = routes(nil, storage.Status, &scope)
	}
	return out, nil
}

// customScope is what handlers know of a kind: how it is decoded, defaulted, pruned and converted.
func customScope(
	k Kind, crd *apiextensionsv1.CustomResourceDefinition, shape *structural.Structural, typer runtime.ObjectTyper,
) (handlers.RequestScope, error) {
	factory, err := conversion.NewCRConverterFactory(nil, nil)
	if err != nil {
		return handlers.RequestScope{}, fmt.Errorf("making a converter: %w", err)
	}
	safe, unsafe, err := factory.NewConverter(crd)
	if err != nil {
		return handlers.RequestScope{}, fmt.Errorf("making a converter: %w", err)
	}
	form := customForm{shape: shape, kind: k.gvk()}
	serializer := newCustomSerializer(form, safe)
	return handlers.RequestScope{
		Namer:               handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: k.Cluster},
		Serializer:          serializer,
		ParameterCodec:      runtime.NewParameterCodec(runtime.NewScheme()),
		StandardSerializers: serializer.withoutProtobuf(),
		Creater:             unstructuredMaker{}, //nolint:misspell // the name in k8s.io/apiserver
		Convertor:           safe,
		Defaulter:           form,
		Typer:               typer,
		UnsafeConvertor:     unsafe,
		Authorizer:          authorized{},

		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		Resource:                 k.resource(),
		Kind:                     k.gvk(),
		HubGroupVersion:          k.gvk().GroupVersion(),
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		MaxRequestBodyBytes:      3 << 20,
	}, nil
}

// typesOf returns the types that server-side apply merges by: those of the schema, as kube-apiserver publishes it.
func typesOf(k Kind, crd *apiextensionsv1.CustomResourceDefinition) (managedfields.TypeConverter, error) {
	if k.Definition == nil {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	document, err := builder.BuildOpenAPIV3(crd, k.Version, builder.Options{})
	if err != nil {
		return nil, fmt.Errorf("publishing the schema: %w", err)
	}
	converter, err := managedfields.NewTypeConverter(document.Components.Schemas, crd.Spec.PreserveUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("reading types of the schema: %w", err)
	}
	return converter, nil
}

func customManaged(
	scope handlers.RequestScope, types managedfields.TypeConverter, reset map[fieldpath.APIVersion]*fieldpath.Set, subresource string,
) (handlers.RequestScope, error) {
	scope.Subresource = subresource
	var err error
	scope.FieldManager, err = managedfields.NewDefaultCRDFieldManager(types, scope.Convertor, scope.Defaulter, unstructuredMaker{}, scope.Kind,
		scope.HubGroupVersion, subresource, fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		return scope, fmt.Errorf("making a field manager: %w", err)
	}
	return scope, nil
}

// definition returns the CustomResourceDefinition of a kind; without one, a definition that accepts every field.
func (k Kind) definition() *apiextensionsv1.CustomResourceDefinition {
	crd := k.Definition.DeepCopy()
	if crd == nil {
		yes := true
		crd = &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: k.Resource + "." + k.Group}}
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Group: k.Group, Scope: apiextensionsv1.NamespaceScoped}
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: k.Resource, Kind: k.Kind}
		if k.Cluster {
			crd.Spec.Scope = apiextensionsv1.ClusterScoped
		}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: k.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
			},
		}}
	}
	if crd.Spec.Conversion == nil {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	if crd.Spec.Names.Singular == "" {
		crd.Spec.Names.Singular = lower(k.Kind)
	}
	if crd.Spec.Names.ListKind == "" {
		crd.Spec.Names.ListKind = k.Kind + "List"
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	return crd
}

// unstructuredTyper and unstructuredMaker are those of kube-apiserver's custom resources.
type unstructuredTyper struct{}

func (unstructuredTyper) ObjectKinds(o runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return crdserverscheme.NewUnstructuredObjectTyper().ObjectKinds(o)
}

func (unstructuredTyper) Recognizes(schema.GroupVersionKind) bool { return true }

type unstructuredMaker struct{}

func (unstructuredMaker) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
