// SPDX-License-Identifier: Apache-2.0

// Package certs proves on a real API server that certificates which the webhook makes itself are renewed, and their
// authority succeeded, without a request that fails: two replicas run as they would in their Pods, with certificates that
// live for seconds.
package certs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The lifetimes of what the replicas make. A certificate is renewed 3 s before it ends.
const (
	certificateLifetime = 9 * time.Second
	authorityLifetime   = 27 * time.Second
)

// What all tests share.
var (
	management *fleet.Cluster
	admin      client.WithWatch
	service    *pod.Service
	replicas   []*replica
	repository *charts.Repository
)

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{CRDs: []string{"../../manifests/crd"}}, Binaries: []string{"shipper-webhook"}, SetUp: setUp,
	}))
}

func setUp(ctx context.Context, e *env.Env) error {
	management, admin, repository = e.Fleet.Management, e.Management, e.Charts
	var ports []int
	for range 2 {
		port, err := pod.FreePort()
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}
	var err error
	if service, err = pod.NewService(ports...); err != nil {
		return err
	}
	m, err := e.Setup(service.Port)
	if err != nil {
		return err
	}
	if err := errors.Join(m.Setup(ctx), m.SetFailurePolicy(ctx)); err != nil {
		return err
	}
	for i, port := range ports {
		r, err := newReplica(ctx, fmt.Sprintf("replica-%d", i+1), e.Dir, e.PodOptions.Dir, port)
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
	}
	return nil
}

// replica is one webhook.
type replica struct {
	*pod.Pod
	port int
}

func newReplica(ctx context.Context, name, bin, dir string, port int) (*replica, error) {
	p, err := pod.New(ctx, pod.Options{
		Management: management, Bin: bin, Dir: filepath.Join(dir, name), WebhookPort: port,
		WebhookFlags: []string{
			"--certificate-lifetime", certificateLifetime.String(), "--authority-lifetime", authorityLifetime.String(),
		},
	})
	return &replica{p, port}, err
}

// start starts all replicas, and stops them after the test.
func start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	t.Cleanup(func() {
		for _, r := range replicas {
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
	for _, r := range replicas {
		if err := r.StartWebhook(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// namespace makes one for the writes of a test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "certs-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// secret is where the certificate is.
func secret(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-webhook-cert"}}
	return s, admin.Get(ctx, client.ObjectKeyFromObject(s), s)
}
