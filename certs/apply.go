// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns the Secret's data and the CA bundles in the webhook configurations.
const fieldOwner = client.FieldOwner("shipper-certs")

// writeSecret writes an act's changes to the Secret, unless it was written since it was read.
func (r *rotation) writeSecret(ctx context.Context, s *seen, a act, now time.Time) error {
	if s.secret == nil {
		return r.makeSecret(ctx)
	}
	e, err := editOf(a, s.observed, r.policy, now)
	if err != nil {
		return err
	}
	changed := s.secret.DeepCopy()
	changed.Data = e.applyTo(s.secret.Data)
	patch := client.MergeFromWithOptions(s.secret, client.MergeFromWithOptimisticLock{})
	if err := r.writer.Patch(ctx, changed, patch, fieldOwner); err != nil {
		return fmt.Errorf("writing secret %s: %w", r.secret, err)
	}
	return nil
}

// makeSecret creates an empty Secret after it was deleted. It applies, because that is the only way to create an object that
// RBAC can limit to its name.
func (r *rotation) makeSecret(ctx context.Context) error {
	secret := corev1ac.Secret(r.secret.Name, r.secret.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/name": "shipper"})
	if err := r.writer.Apply(ctx, secret, fieldOwner); err != nil {
		return fmt.Errorf("making secret %s: %w", r.secret, err)
	}
	return nil
}

// writeConfigurations writes the wanted bundle into every webhook.
func (r *rotation) writeConfigurations(ctx context.Context, s *seen, a act, now time.Time) error {
	for _, c := range s.configurations {
		patch, err := c.patch(func(bundle []*x509.Certificate) []*x509.Certificate { return s.wanted(bundle, a, now) })
		if err != nil {
			return err
		}
		if patch == nil {
			continue
		}
		if err := r.writer.Patch(ctx, c.object, patch, fieldOwner); err != nil {
			return fmt.Errorf("writing the CA bundle of %s %s: %w", c.kind, r.name, err)
		}
	}
	return nil
}

// wanted is the new content of a bundle. While publishing, authorities are only added.
func (o observed) wanted(bundle []*x509.Certificate, a act, now time.Time) []*x509.Certificate {
	all := o.trusted(now)
	if a == publish {
		for _, c := range bundle {
			if live(c, now) && !contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch changes only CA bundles whose authorities are not the wanted ones, and only if the configuration was not written since
// it was read. It is nil when there is nothing to change.
func (c configuration) patch(wanted func([]*x509.Certificate) []*x509.Certificate) (client.Patch, error) {
	operations := []operation{{"replace", "/metadata/resourceVersion", c.object.GetResourceVersion()}}
	for i, text := range c.texts {
		bundle := certificates(text)
		want := wanted(bundle)
		if same(bundle, want) {
			continue
		}
		path := fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i)
		operations = append(operations, operation{"add", path, encode(want...)})
	}
	if len(operations) == 1 {
		return nil, nil
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s: %w", c.kind, err)
	}
	return client.RawPatch(types.JSONPatchType, text), nil
}

// same reports whether two bundles have the same authorities.
func same(a, b []*x509.Certificate) bool {
	lacks := func(a, b []*x509.Certificate) bool {
		return slices.ContainsFunc(a, func(c *x509.Certificate) bool { return !contains(b, c) })
	}
	return !lacks(a, b) && !lacks(b, a)
}
