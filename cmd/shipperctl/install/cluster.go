// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Ready tells, as an error with what to do, whether the management cluster lacks what joining needs.
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

// Join makes an application cluster known to the management cluster: what it is, and how to speak to it.
func (m *Management) Join(ctx context.Context, name string, spec shipper.ClusterSpec, credentials Credentials) error {
	var owner *shipper.Cluster
	title := fmt.Sprintf("Creating or updating the cluster object for cluster %s on the management cluster", name)
	err := m.Report.Step(title, func() (string, error) {
		cluster, how, err := m.cluster(ctx, name, spec)
		owner = cluster
		if how == updated {
			how = created // the title says "or updating" already
		}
		return string(how), err
	})
	if err != nil {
		return err
	}
	return m.secret(ctx, owner, credentials)
}

// cluster writes a Cluster object. The whole spec becomes what is given, so that what is taken out of clusters.yaml is
// taken back here. Nothing is sent when it is so already: that works while the webhook is down, too.
func (m *Management) cluster(
	ctx context.Context, name string, spec shipper.ClusterSpec,
) (*shipper.Cluster, outcome, error) {
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
		if reflect.DeepEqual(cluster.Spec, spec) {
			how = unchanged
			return nil
		}
		how = updated
		cluster.Spec = spec
		return m.Client.Update(ctx, cluster, client.FieldOwner(fieldOwner))
	})
	return cluster, how, err
}
