// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
)

// ReviewPath returns the secret path at which the webhook answers for hook, such as /validate-application?timeout=5s.
func ReviewPath(ctx context.Context, reader client.Reader, hook string) (string, error) {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: shipper.SystemNamespace, Name: "shipper-webhook-cert"}
	if err := reader.Get(ctx, key, &secret); err != nil {
		return "", fmt.Errorf("reading the path of reviews: %w", err)
	}
	return "/" + string(secret.Data[reviewpath.TokenKey]) + hook, nil
}
