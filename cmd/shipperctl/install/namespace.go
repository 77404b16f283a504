// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/manifests"
)

// namespace makes the namespace that manifests/deploy calls like, under the name it has here, with what that says of Pods in it.
func (m *Management) namespace(ctx context.Context, like, name string) error {
	want, err := manifests.Object(manifests.Deploy, "Namespace", like)
	if err != nil {
		return err
	}
	want.SetName(name)
	return namespace(ctx, m.Client, m.Report, want)
}

// unlabelled is a namespace of which nothing is known but its name.
func unlabelled(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	return o
}

// namespace makes a namespace. One that exists is left as it is: its labels belong to whoever made it.
func namespace(ctx context.Context, c client.Client, r *Report, want *unstructured.Unstructured) error {
	return r.Step("Creating a namespace called "+want.GetName(), func() (string, error) {
		live, err := current(ctx, c, want)
		if err != nil {
			return "", err
		}
		if live != nil && live.GetDeletionTimestamp() != nil {
			return "", errors.New("it exists and is being deleted; wait until it is gone and run this again")
		}
		how, err := ensure(ctx, c, want)
		if err != nil {
			return "", fmt.Errorf("creating it: %w", err)
		}
		return string(how), nil
	})
}
