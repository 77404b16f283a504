// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Ready returns an error, with its remedy, if the management cluster lacks what joining needs.
func (m *Management) Ready(ctx context.Context) error {
	const first = "this management cluster is not set up, or your context points to another one: run " +
		"`shipperctl clusters setup management` first"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := m.Client.Get(ctx, client.ObjectKey{Name: shipper.Resource("clusters").String()}, crd)
	if apierrors.IsNotFound(err) || err == nil && !established(crd) {
		return fmt.Errorf("the kind Cluster is not there: %s", first)
	}
	if err != nil {
		return explain("looking at the management cluster", err)
	}
	err = m.Client.Get(ctx, client.ObjectKey{Name: m.Namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no namespace %s for the credentials: %s", m.Namespace, first)
	}
	if err != nil {
		return explain("looking at the management cluster", err)
	}
	return nil
}

// Join writes the Cluster and its credentials into the management cluster.
func (m *Management) Join(ctx context.Context, name string, spec shipper.ClusterSpec, credentials Credentials) error {
	var owner *shipper.Cluster
	title := fmt.Sprintf("Creating or updating the cluster object for cluster %s on the management cluster", name)
	err := m.Report.Step(title, func() (string, error) {
		cluster, how, err := m.cluster(ctx, name, spec)
		owner = cluster
		if how == updated {
			how = created // the title says "or updating" already
		}
		return how, err
	})
	if err != nil {
		return err
	}
	return m.secret(ctx, owner, credentials)
}

// cluster writes a Cluster object. It replaces the whole spec, so that fields removed from clusters.yaml are reset, except metrics,
// taints, properties and onLeave: those that the Cluster has stay if clusters.yaml names none. Without a difference it sends nothing,
// which works while the webhook is down, too.
func (m *Management) cluster(
	ctx context.Context, name string, spec shipper.ClusterSpec,
) (*shipper.Cluster, string, error) {
	if spec.Capabilities == nil {
		spec.Capabilities = []string{}
	}
	cluster, how := &shipper.Cluster{}, unchanged
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := m.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
		if apierrors.IsNotFound(err) {
			how = created
			cluster = &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
			return m.Client.Create(ctx, cluster, client.FieldOwner(fieldOwner))
		}
		if err != nil {
			return err
		}
		if cluster.Spec.Capabilities == nil {
			cluster.Spec.Capabilities = []string{}
		}
		want := spec
		if want.Metrics == nil {
			want.Metrics = cluster.Spec.Metrics
		}
		if want.Taints == nil {
			want.Taints = cluster.Spec.Taints
		}
		if want.Properties == nil {
			want.Properties = cluster.Spec.Properties
		}
		want.OnLeave = cmp.Or(want.OnLeave, cluster.Spec.OnLeave)
		if reflect.DeepEqual(cluster.Spec, want) {
			how = unchanged
			return nil
		}
		how = updated
		cluster.Spec = want
		return m.Client.Update(ctx, cluster, client.FieldOwner(fieldOwner))
	})
	return cluster, how, err
}

// ReservedSecrets are names in Shipper's namespace that no cluster can have, since a cluster's Secret has its name.
func ReservedSecrets(serviceAccount string) []string {
	return []string{webhookCertificate, endlessName(serviceAccount)}
}

// secret writes the credentials of a cluster into the Secret of the same name. It goes when the Cluster goes.
func (m *Management) secret(ctx context.Context, owner *shipper.Cluster, credentials Credentials) error {
	title := fmt.Sprintf("Checking whether a secret for the %s cluster exists in the %s namespace",
		owner.Name, m.Namespace)
	return m.Report.Step(title, func() (string, error) {
		secret := &corev1.Secret{}
		err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, secret)
		if apierrors.IsNotFound(err) {
			secret.Name, secret.Namespace = owner.Name, m.Namespace
			fill(secret, owner, credentials)
			return found(created), m.Client.Create(ctx, secret, client.FieldOwner(fieldOwner))
		}
		if err != nil {
			return "", err
		}
		if (Holder{Secret: secret}).certified() {
			return "yes, with a client certificate. Skipping", nil
		}
		before := secret.DeepCopy()
		fill(secret, owner, credentials)
		if reflect.DeepEqual(before, secret) {
			return found(unchanged), nil
		}
		return found(updated), m.Client.Update(ctx, secret, client.FieldOwner(fieldOwner))
	})
}

// fill puts credentials and the reference to the owner into a Secret, and leaves the rest of it.
func fill(secret *corev1.Secret, owner *shipper.Cluster, credentials Credentials) {
	want := map[string][]byte{
		corev1.ServiceAccountTokenKey:  credentials.Token,
		corev1.ServiceAccountRootCAKey: credentials.CA,
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range want {
		if !bytes.Equal(secret.Data[key], value) {
			secret.Data[key] = value
		}
	}
	markRenewal(secret, credentials)
	reference := metav1.OwnerReference{
		APIVersion: shipper.GroupVersion.String(), Kind: "Cluster", Name: owner.Name, UID: owner.UID,
	}
	if slices.Contains(secret.OwnerReferences, reference) {
		return
	}
	// References to an earlier Cluster of this name, or with the API version that the original wrote by mistake, would let
	// the garbage collector take the Secret.
	secret.OwnerReferences = slices.DeleteFunc(secret.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == "Cluster" && r.Name == owner.Name
	})
	secret.OwnerReferences = append(secret.OwnerReferences, reference)
}

// markRenewal annotates a Secret with the lifetime of its token, if Shipper renews it.
func markRenewal(secret *corev1.Secret, credentials Credentials) {
	delete(secret.Annotations, shipper.SecretRevokedAnnotation)
	if credentials.Life == 0 {
		delete(secret.Annotations, shipper.SecretRenewAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, shipper.SecretRenewAnnotation, credentials.Life.String())
}
