// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Decode reads the object and the old object of req; the one that the operation does not have is nil.
// A request without one that its operation has is refused. Numbers in
// free-form values are decoded as the API machinery decodes them, so that equal objects are equal.
func Decode[T any](req *admission.Request) (now, old *T, err error) {
	if now, err = decode[T](req.Object.Raw); err != nil {
		return nil, nil, fmt.Errorf("decoding the object: %w", err)
	}
	if old, err = decode[T](req.OldObject.Raw); err != nil {
		return nil, nil, fmt.Errorf("decoding the old object: %w", err)
	}
	switch {
	case req.Operation != admissionv1.Delete && now == nil:
		return nil, nil, malformed("the request has no object")
	case req.Operation != admissionv1.Create && old == nil:
		return nil, nil, malformed("the request has no old object")
	}
	return now, old, nil
}

func decode[T any](raw []byte) (*T, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	return out, nil
}
