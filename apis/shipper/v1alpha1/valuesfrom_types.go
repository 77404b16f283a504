// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DefaultValuesKey is the key that is read where none is named.
const DefaultValuesKey = "values.yaml"

// ValuesAbsent is the digest of what was not there, and need not be.
const ValuesAbsent = "absent"

// ValuesSource is a ConfigMap or a Secret of the Application's namespace that holds values. Who names it has to be allowed to get it;
// so has Shipper, by a RoleBinding of the namespace to the ClusterRole shipper-values-keeper.
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="name either a ConfigMap or a Secret"
type ValuesSource struct {
	// configMapKeyRef names a ConfigMap and its key.
	// +optional
	ConfigMapKeyRef *ValuesKeyRef `json:"configMapKeyRef,omitempty"`

	// secretKeyRef names a Secret and its key. What it holds is shown nowhere in Shipper's objects, events and logs.
	// +optional
	SecretKeyRef *ValuesKeyRef `json:"secretKeyRef,omitempty"`
}

// ValuesKeyRef names an object in the namespace of the Application, and one of its keys: a text in YAML that is a map, as a
// values.yaml is.
type ValuesKeyRef struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in its data. Absent means values.yaml.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional lets the object or its key be missing, which is as if it held nothing. Absent means that they must be there.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Secret tells whether it is a Secret.
func (s ValuesSource) Secret() bool { return s.SecretKeyRef != nil }

// Ref is what it names, with its key.
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

// String is Kind/name/key, by which digests are told apart.
func (s ValuesSource) String() string {
	kind := "ConfigMap"
	if s.Secret() {
		kind = "Secret"
	}
	return kind + "/" + s.Ref().Name + "/" + s.Ref().Key
}
