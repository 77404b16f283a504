// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// The lifetimes of what the rotating replicas make. A certificate is renewed 3 s before it ends.
const (
	certificateLifetime = 9 * time.Second
	authorityLifetime   = 27 * time.Second
)

// rotating are the replicas of TestCertificates, behind an address of their own.
var rotating struct {
	service  *pod.Service
	replicas []*rotatingReplica
}

// rotatingReplica is a webhook whose certificates live for seconds.
type rotatingReplica struct {
	*pod.Pod
	port int
}

// rotate ends the other replicas and has the API server call the rotating ones, until the test ends.
func rotate(t *testing.T) {
	t.Helper()
	loseReplicas(t)
	t.Cleanup(func() { // before the others start
		ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
		defer cancel()
		s, err := certificateSecret(ctx)
		err = errors.Join(err, client.IgnoreNotFound(world.Management.Delete(ctx, s)), callsReplicasAt(ctx, world.install))
		if err != nil {
			t.Error(err)
		}
		rotating.service.Close()
	})
	var ports []int
	for range 2 {
		port, err := pod.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	var err error
	if rotating.service, err = pod.NewService(ports...); err != nil {
		t.Fatal(err)
	}
	m, err := world.Setup(rotating.service.Port)
	if err == nil {
		err = callsReplicasAt(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	rotating.replicas = nil
	for i, port := range ports {
		r, err := newRotating(t.Context(), fmt.Sprintf("rotating-%d", i+1), port)
		if err != nil {
			t.Fatal(err)
		}
		rotating.replicas = append(rotating.replicas, r)
	}
}

// callsReplicasAt sets the management cluster up for the replicas of an address.
func callsReplicasAt(ctx context.Context, m *install.Management) error {
	return errors.Join(m.Setup(ctx), m.SetFailurePolicy(ctx))
}

func newRotating(ctx context.Context, name string, port int) (*rotatingReplica, error) {
	p, err := pod.New(ctx, pod.Options{
		Management: world.Fleet.Management, Bin: world.Dir, Dir: filepath.Join(world.PodOptions.Dir, name), WebhookPort: port,
		WebhookFlags: []string{
			"--certificate-lifetime", certificateLifetime.String(), "--authority-lifetime", authorityLifetime.String(),
		},
	})
	return &rotatingReplica{p, port}, err
}

// startRotating starts all rotating replicas, and stops them after the test.
func startRotating(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	t.Cleanup(func() {
		for _, r := range rotating.replicas {
			if r.Webhook == nil {
				continue
			}
			if t.Failed() {
				t.Logf("%s", r.Webhook.Tail())
			}
			if err := r.Webhook.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, r := range rotating.replicas {
		if err := r.StartWebhook(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// certificateSecret is where the certificate is.
func certificateSecret(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-webhook-cert"}}
	return s, world.Management.Get(ctx, client.ObjectKeyFromObject(s), s)
}
