// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// TestCredentialsAreRotated revokes the credentials of one application cluster before new ones exist. Workloads keep running,
// Shipper goes on with the other cluster, and nothing has to be restarted once the Secret is right again.
func TestCredentialsAreRotated(t *testing.T) {
	env.Nightly(t, "test/integration renews and replaces tokens, on clusters that stay; this one is put back from its past")
	s := begin(t).on(t)
	s.applies(environment("first", "0.0.1", allIn))
	incumbent := s.Release(0)
	s.Completes(incumbent)
	s.pods(incumbent, replicas, replicas)
	for _, g := range s.guards {
		g.hold(replicas, false)
	}

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: shipper.SystemNamespace, Name: shipper.ApplicationServiceAccount,
	}}
	s.Must("revoking the credentials", world.lost.Clusters[putBack].Delete(s.Ctx, account))
	revoked := time.Now()
	s.operational(incumbent, "False", putBack+": CredentialsRefused the API server at ")
	t.Logf("it was reported after %s, 30 s at most where the machine is not busy", time.Since(revoked))
	s.clusterReady("False CredentialsRefused")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: putBack}}
	s.Must("reading the Secret", world.lost.Management.Get(s.Ctx, client.ObjectKeyFromObject(secret), secret))
	secret.Data["ca.crt"] = []byte("no certificate")
	s.Must("writing a wrong Secret", world.lost.Management.Update(s.Ctx, secret))
	s.clusterReady("False SecretInvalid")
	s.operational(incumbent, "False", putBack+`: SecretInvalid Secret "shipper-system/`+putBack+`" has a CA that is not a PEM certificate`)

	// The steps of the guide: a new account, a new token, a new Secret.
	file := filepath.Join(world.lost.Dir, "clusters.yaml")
	s.Must("joining again", pod.Shipperctl(s.Ctx, world.lost.Fleet, world.lost.Dir, "clusters", "join", "-f", file))
	s.clusterReady("True ")
	s.operational(incumbent, "True", "")
	s.scheduled(incumbent)
	s.judged()
	s.Must("running the reconciler", world.lost.Pod.Reconciler.Ended())

	s.edits(environment("second", "0.0.2", allIn))
	contender := s.Release(1)
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
}

// TestAnAuthorityIsReplaced restarts the API server of one application cluster with a certificate of another CA than that in
// its Secret. Workloads keep running, Shipper goes on with the other cluster, and nothing has to be restarted once the Secret
// has the new CA.
func TestAnAuthorityIsReplaced(t *testing.T) {
	env.Nightly(t, "reconciler/fleet distinguishes a wrong authority from a wrong token, with real certificates")
	s := begin(t).on(t)
	s.applies(environment("first", "0.0.1", allIn))
	incumbent := s.Release(0)
	s.Completes(incumbent)
	s.pods(incumbent, replicas, replicas)
	for _, g := range s.guards {
		if g.cluster == present {
			g.hold(replicas, true)
		}
	}

	// A user with the administrator's kubeconfig trusts the new CA already: the fleet rewrites that file.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: putBack}}
	s.Must("reading the Secret", world.lost.Management.Get(s.Ctx, client.ObjectKeyFromObject(secret), secret))
	old, _ := pem.Decode(clusterOf(putBack).Config.CAData)
	secret.Data["ca.crt"] = pem.EncodeToMemory(old)
	s.Must("trusting the old CA alone", world.lost.Management.Update(s.Ctx, secret))
	s.clusterReady("True ")

	restarted := time.Now()
	ca, err := clusterOf(putBack).Recertify(s.Ctx)
	s.Must("replacing the authority", err)
	s.clusterReady("False SecretInvalid")
	s.operational(incumbent, "False", putBack+": SecretInvalid the certificate of "+clusterOf(putBack).Config.Host+
		" is not signed by the CA in the Secret")
	t.Logf("it was reported after %s, 30 s at most where the machine is not busy", time.Since(restarted))
	s.edits(environment("second", "0.0.2", allIn))
	contender := s.Release(1)
	s.installed(contender, present)

	s.Must("reading the Secret", world.lost.Management.Get(s.Ctx, client.ObjectKeyFromObject(secret), secret))
	secret.Data["ca.crt"] = ca
	s.Must("giving the Secret the new CA", world.lost.Management.Update(s.Ctx, secret))
	s.clusterReady("True ")
	s.operational(incumbent, "True", "")
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
	s.judged()
	s.Must("running the reconciler", world.lost.Pod.Reconciler.Ended())
}

// installed waits until a Release's chart is installed in a cluster, whatever the state of other clusters.
func (s *fixture) installed(release, cluster string) {
	s.Helper()
	s.Eventually("installation of "+release+" in "+cluster, "True", func() (string, error) {
		it := &shipper.InstallationTarget{}
		err := s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, it)
		for _, c := range it.Status.Clusters {
			if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); c.Name == cluster && ready != nil {
				return string(ready.Status), err
			}
		}
		return "absent", err
	})
}

// clusterReady waits until the Cluster whose credentials are rotated reports want.
func (s *fixture) clusterReady(want string) {
	s.Helper()
	s.Eventually("Ready of "+putBack, want, func() (string, error) {
		cluster := &shipper.Cluster{}
		err := s.management.Management.Get(s.Ctx, client.ObjectKey{Name: putBack}, cluster)
		if c := shipper.FindCondition(cluster.Status.Conditions, shipper.ClusterReady); c != nil {
			return fmt.Sprintf("%s %s", c.Status, c.Reason), err
		}
		return "absent", err
	})
}

// operational waits until all three targets of a Release report status, with a message that begins with message.
func (s *fixture) operational(release, status, message string) {
	s.Helper()
	want := fmt.Sprintf("%s %s", status, message)
	for _, target := range []client.Object{&shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}} {
		s.Eventually(fmt.Sprintf("Operational of %T %s", target, release), want, func() (string, error) {
			err := s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, target)
			c := shipper.FindCondition(conditionsOf(target), shipper.TargetOperational)
			if c == nil {
				return "absent", err
			}
			seen := fmt.Sprintf("%s %s", c.Status, c.Message)
			if message != "" && strings.HasPrefix(seen, want) {
				seen = want
			}
			return seen, err
		})
	}
}

func conditionsOf(target client.Object) []shipper.Condition {
	switch o := target.(type) {
	case *shipper.InstallationTarget:
		return o.Status.Conditions
	case *shipper.CapacityTarget:
		return o.Status.Conditions
	case *shipper.TrafficTarget:
		return o.Status.Conditions
	}
	return nil
}
