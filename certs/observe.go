// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seen is the result of the reads of one pass.
type seen struct {
	observed
	// secret is nil when there is none.
	secret *corev1.Secret
	// configurations are those that exist.
	configurations []configuration
}

// configuration is one of the two webhook configurations.
type configuration struct {
	object client.Object
	kind   string
	// texts are the CA bundles of its webhooks, as stored.
	texts [][]byte
}

// observe reads the state. It reads the Secret last, because replicas write a new authority to the Secret first: an authority
// that is in these configurations and not in this Secret was removed from it and is not about to be added.
func (r *rotation) observe(ctx context.Context, reader client.Reader) (*seen, error) {
	s := &seen{}
	var err error
	if s.configurations, err = r.configurations(ctx, reader); err != nil {
		return nil, err
	}
	for _, c := range s.configurations {
		for _, text := range c.texts {
			s.bundles = append(s.bundles, certificates(text))
		}
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, r.secret, secret); err == nil {
		s.secret = secret
		s.contents = read(secret.Data)
	} else if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading secret %s: %w", r.secret, err)
	}
	s.memory = r.serving()
	if s.next != nil && r.trusted != nil && r.trusted.Equal(s.next.certificate) {
		s.trustedSince = r.since
	}
	return s, nil
}

// configurations reads both webhook configurations. It skips a missing one, which trusts no authority.
func (r *rotation) configurations(ctx context.Context, reader client.Reader) ([]configuration, error) {
	var found []configuration
	key := client.ObjectKey{Name: r.name}
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	if err := reader.Get(ctx, key, validating); err == nil {
		c := configuration{object: validating, kind: "ValidatingWebhookConfiguration"}
		for _, w := range validating.Webhooks {
			c.texts = append(c.texts, w.ClientConfig.CABundle)
		}
		found = append(found, c)
	} else if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", r.name, err)
	}
	mutating := &admissionv1.MutatingWebhookConfiguration{}
	if err := reader.Get(ctx, key, mutating); err == nil {
		c := configuration{object: mutating, kind: "MutatingWebhookConfiguration"}
		for _, w := range mutating.Webhooks {
			c.texts = append(c.texts, w.ClientConfig.CABundle)
		}
		found = append(found, c)
	} else if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", r.name, err)
	}
	return found, nil
}
