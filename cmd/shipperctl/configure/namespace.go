// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespace makes a namespace. One that exists is left as it is: its labels belong to whoever made it.
func namespace(ctx context.Context, c client.Client, r *Report, name string) error {
	return r.Step("Creating a namespace called "+name, func() (string, error) {
		want := &unstructured.Unstructured{}
		want.SetAPIVersion("v1")
		want.SetKind("Namespace")
		want.SetName(name)
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
