// SPDX-License-Identifier: Apache-2.0

package response

import (
	stdjson "encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Decode decodes the object and the old object of req; the one that the operation does not have is nil, and a request that
// lacks another is refused. Numbers in free-form values are decoded as the API machinery does, so that equal objects are equal.
//
// A malformed status is left out. A user may send any status: the API server restores the old one, but only after the mutating
// webhooks. A malformed one must not prevent them from seeing the rest.
func Decode[T any](req *admission.Request) (now, old *T, err error) {
	if now, err = decode[T](req.Object.Raw); err != nil {
		return nil, nil, fmt.Errorf("decoding the object: %w", err)
	}
	if old, err = decode[T](req.OldObject.Raw); err != nil {
		return nil, nil, fmt.Errorf("decoding the old object: %w", err)
	}
	if !inNamespace(now, req.Namespace) || !inNamespace(old, req.Namespace) {
		return nil, nil, malformed("the object is in another namespace than the request")
	}
	switch {
	case req.Operation != admissionv1.Delete && now == nil:
		return nil, nil, malformed("the request has no object")
	case req.Operation != admissionv1.Create && old == nil:
		return nil, nil, malformed("the request has no old object")
	}
	return now, old, nil
}

// inNamespace reports whether an object, which may be nil, is in the namespace of its request. Webhooks use the object's
// namespace, so a caller that may ask about one namespace must not get an answer about another. API servers never send a
// different one.
func inNamespace[T any](object *T, namespace string) bool {
	meta, ok := any(object).(interface{ GetNamespace() string })
	return object == nil || !ok || meta.GetNamespace() == "" || meta.GetNamespace() == namespace
}

func decode[T any](raw []byte) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	out := new(T)
	err := json.Unmarshal(raw, out)
	if err == nil {
		return out, nil
	}
	rest, there := withoutStatus(raw)
	if !there {
		return nil, err
	}
	out = new(T) // the failed attempt has filled a part of it
	return out, json.Unmarshal(rest, out)
}

// withoutStatus is raw without its status; there is false when it has none.
func withoutStatus(raw []byte) (rest []byte, there bool) {
	var fields map[string]stdjson.RawMessage
	if err := stdjson.Unmarshal(raw, &fields); err != nil {
		return nil, false
	}
	if _, there = fields["status"]; !there {
		return nil, false
	}
	delete(fields, "status")
	rest, err := stdjson.Marshal(fields)
	return rest, err == nil
}
