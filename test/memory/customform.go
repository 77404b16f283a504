// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// customForm prunes, checks and defaults decoded custom resources as kube-apiserver does (unstructuredSchemaCoercer there).
type customForm struct {
	shape *structural.Structural
	kind  schema.GroupVersionKind
}

// of returns the schema of a version; versions that are not served have none.
func (f customForm) of(version string) *structural.Structural {
	if version == f.kind.Version {
		return f.shape
	}
	return nil
}

// Default sets defaults of the schema.
func (f customForm) Default(in runtime.Object) {
	if u, ok := in.(runtime.Unstructured); ok && u.GetObjectKind().GroupVersionKind().GroupKind() == f.kind.GroupKind() {
		defaulting.Default(u.UnstructuredContent(), f.of(u.GetObjectKind().GroupVersionKind().Version))
		return
	}
	builtin.Default(in)
}

// coerce removes unknown fields, whose paths it returns if they are asked for, and checks metadata.
func (f customForm) coerce(u *unstructured.Unstructured, paths bool) ([]string, error) {
	gvk := u.GroupVersionKind()
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: paths})
	if err != nil {
		return nil, err
	}
	if shape := f.of(gvk.Version); gvk.GroupKind() == f.kind.GroupKind() {
		options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: paths}
		unknown = append(unknown, pruning.PruneWithOptions(u.Object, shape, true, options)...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, shape)
		err, more := objectmeta.CoerceWithOptions(nil, u.Object, shape, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: paths})
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
	}
	u.SetGroupVersionKind(gvk)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, fmt.Errorf("writing metadata: %w", err)
		}
	}
	return unknown, nil
}

// customDecoder decodes and coerces.
type customDecoder struct {
	runtime.Decoder
	form  customForm
	paths bool
}

// Decode is a part of runtime.Decoder.
func (d customDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	var strict []error
	o, gvk, err := d.Decoder.Decode(data, defaults, into)
	if err != nil {
		is, ok := runtime.AsStrictDecodingError(err)
		if !ok || o == nil {
			return nil, gvk, err
		}
		strict = is.Errors()
	}
	var unknown []string
	if u, ok := o.(*unstructured.Unstructured); ok {
		if unknown, err = d.form.coerce(u, d.paths); err != nil {
			return nil, gvk, err
		}
	}
	if d.paths && len(strict)+len(unknown) > 0 {
		for _, path := range unknown {
			strict = append(strict, fmt.Errorf("unknown field %q", path))
		}
		return o, gvk, runtime.NewStrictDecodingError(strict)
	}
	return o, gvk, nil
}

// customSerializer negotiates JSON, YAML and, for what is not the kind itself, protobuf.
type customSerializer struct {
	form      customForm
	converter runtime.ObjectConvertor
	infos     []runtime.SerializerInfo
}

func newCustomSerializer(form customForm, converter runtime.ObjectConvertor) *customSerializer {
	maker, typer := unstructuredMaker{}, unstructuredTyper{}
	with := func(o json.SerializerOptions) *json.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, maker, typer, o)
	}
	return &customSerializer{form: form, converter: converter, infos: []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer: with(json.SerializerOptions{}), PrettySerializer: with(json.SerializerOptions{Pretty: true}),
			StrictSerializer: with(json.SerializerOptions{Strict: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: with(json.SerializerOptions{}), Framer: json.Framer},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer: with(json.SerializerOptions{Yaml: true}), StrictSerializer: with(json.SerializerOptions{Yaml: true, Strict: true}),
		},
		{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
			Serializer: protobuf.NewSerializer(maker, typer),
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: protobuf.NewRawSerializer(maker, typer), Framer: protobuf.LengthDelimitedFramer,
			},
		},
	}}
}

func (s *customSerializer) withoutProtobuf() []runtime.SerializerInfo { return s.infos[:2] }

// SupportedMediaTypes is a part of runtime.NegotiatedSerializer.
func (s *customSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return s.infos }

// EncoderForVersion is a part of runtime.NegotiatedSerializer.
func (s *customSerializer) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return versioning.NewCodec(encoder, nil, s.converter, builtin, builtin, builtin, gv, nil, "custom")
}

// DecoderToVersion is a part of runtime.NegotiatedSerializer.
func (s *customSerializer) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	of, ok := decoder.(*json.Serializer)
	d := customDecoder{Decoder: decoder, form: s.form, paths: ok && of.IsStrict()}
	return versioning.NewCodec(nil, d, runtime.UnsafeObjectConvertor(builtin), builtin, builtin, s.form, nil, gv, "custom")
}
