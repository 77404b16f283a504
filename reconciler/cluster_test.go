// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clusterIs waits until a Cluster is Ready, or not Ready for a reason.
func (s *story) clusterIs(name, reason string) *shipper.Cluster {
	s.Helper()
	c := &shipper.Cluster{}
	s.soon(fmt.Sprintf("Cluster %s is not %q", name, reason), func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKey{Name: name}, c))
		ready := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady)
		if ready != nil && ready.Reason == reason && (reason == "") == (ready.Status == corev1.ConditionTrue) &&
			c.Status.InService == (reason == "") {
			return ""
		}
		return fmt.Sprintf("%+v", c.Status)
	})
	return c
}

// mended mends the wire to a cluster and waits until Shipper has noticed.
func (s *story) mended(cluster string) {
	s.Helper()
	world.wires[cluster].Mend()
	s.clusterIs(cluster, "")
}

func TestTellsTheVersionOfACluster(t *testing.T) {
	s := begin(t)
	c := s.clusterIs(west, "")
	if !strings.HasPrefix(c.Status.KubernetesVersion, "v1.") || c.Status.ObservedGeneration != c.Generation {
		t.Errorf("status is %+v", c.Status)
	}
}

func TestTellsWhatIsWrongWithASecret(t *testing.T) {
	s := begin(t, west)
	c := aCluster("doubtful", west)
	s.must(s.management.Create(s.ctx, c))
	defer func() { s.must(s.management.Delete(s.ctx, c)) }()
	s.clusterIs(c.Name, shipper.SecretMissing)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, c.Name)
	s.notInstalled("web-1", c.Name, shipper.SecretMissing)

	secret := clusterSecret(c.Name, west)
	secret.Data["token"] = []byte("not a token of that cluster")
	s.lend(secret)
	s.clusterIs(c.Name, shipper.CredentialsRefused)
	s.notInstalled("web-1", c.Name, shipper.CredentialsRefused)

	for name, wrong := range map[string]map[string][]byte{
		"nothing in it":      {},
		"a CA that is none":  {"token": clusterSecret(c.Name, west).Data["token"], "ca.crt": []byte("x")},
		"the wrong cluster":  clusterSecret(c.Name, east).Data,
		"a key that is none": {"tls.crt": []byte("x"), "tls.key": []byte("y")},
	} {
		t.Log(name)
		s.change(secret, func(client.Object) { secret.Data = wrong })
		if name == "the wrong cluster" { // clusters of this fleet may or may not have a CA in common
			continue
		}
		s.clusterIs(c.Name, shipper.SecretInvalid)
	}
	s.change(secret, func(client.Object) { secret.Data = clusterSecret(c.Name, west).Data })
	s.clusterIs(c.Name, "")
	it := s.installed("web-1")
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}

func TestNamesAClusterThatDiedAndFindsItAgain(t *testing.T) {
	s := begin(t, west, east)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	s.notInstalled("web-1", west, shipper.ClusterUnreachable)
	var it shipper.InstallationTarget
	s.must(s.management.Get(s.ctx, s.key("web-1"), &it))
	operational := shipper.FindCondition(it.Status.Conditions, shipper.TargetOperational)
	if operational.Status != corev1.ConditionFalse || operational.Reason != shipper.ClustersNotOperational ||
		!strings.HasPrefix(operational.Message, "west: ClusterUnreachable the API server at ") {
		t.Errorf("Operational is %+v", operational)
	}
	s.scale("web-1", 100, 2, west, east)
	s.soon("the cluster that lives is not scaled", func() string {
		if d := s.deployment(east, "web-1"); *d.Spec.Replicas != 2 {
			return fmt.Sprint(*d.Spec.Replicas)
		}
		return ""
	})
	s.mended(west)
	s.installed("web-1")
	s.scaled("web-1")
}
