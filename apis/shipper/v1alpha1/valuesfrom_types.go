// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DefaultValuesKey is the key that is read when a ValuesKeyRef names none.
const DefaultValuesKey = "values.yaml"

// ValuesAbsent is the digest of an optional object or key that is missing.
const ValuesAbsent = "absent"

// ValuesSource is a ConfigMap or a Secret of the Application's namespace with values. The user who names it needs the right to get
// it. So does Shipper, by a RoleBinding in the namespace to the ClusterRole shipper-values-keeper.
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="name either a ConfigMap or a Secret"
type ValuesSource struct {
	// configMapKeyRef names a ConfigMap and its key.
	// +optional
	ConfigMapKeyRef *ValuesKeyRef `json:"configMapKeyRef,omitempty"`

	// secretKeyRef names a Secret and its key. Its content is never shown in Shipper's kinds, events and logs.
	// +optional
	SecretKeyRef *ValuesKeyRef `json:"secretKeyRef,omitempty"`
}

// ValuesKeyRef names an object in the namespace of the Application, and one of its keys. The content is a YAML map, like a
// values.yaml.
type ValuesKeyRef struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in its data. Absent means values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional allows the object or its key to be missing; that counts as empty values. Absent means that both must exist.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Secret reports whether the source is a Secret.
func (s ValuesSource) Secret() bool { return s.SecretKeyRef != nil }

// Ref is the reference to the object, with the default key filled in.
func (s ValuesSource) Ref() ValuesKeyRef {
	var out ValuesKeyRef
	switch {
	case s.SecretKeyRef != nil:
		out = *s.SecretKeyRef
	case s.ConfigMapKeyRef != nil:
		out = *s.ConfigMapKeyRef
	}
	if out.Key == "" {
		out.Key = DefaultValuesKey
	}
	return out
}

// String is Kind/name/key: the key of the source in valuesDigests.
func (s ValuesSource) String() string {
	kind := "ConfigMap"
	if s.Secret() {
		kind = "Secret"
	}
	return kind + "/" + s.Ref().Name + "/" + s.Ref().Key
}
