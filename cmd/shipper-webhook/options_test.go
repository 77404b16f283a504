// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/certs"
)

func TestDefaults(t *testing.T) {
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := certs.Options{
		Mode: certs.Self, Secret: types.NamespacedName{Namespace: "shipper-system", Name: "shipper-webhook-cert"},
		DNSNames:       []string{"shipper-webhook.shipper-system.svc", "shipper-webhook.shipper-system.svc.cluster.local"},
		Lifetimes:      certs.Lifetimes{Authority: 87600 * time.Hour, Certificate: 2160 * time.Hour},
		Configurations: "shipper.booking.com",
	}
	if diff := cmp.Diff(want, o.certOptions()); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	if want := "system:serviceaccount:shipper-system:shipper-mgmt-cluster"; o.reconcilerUser != want {
		t.Errorf("reconciler %q, want %q", o.reconcilerUser, want)
	}
	if host, port, err := o.listen(); host != "" || port != 9443 || err != nil {
		t.Errorf("listens on %q:%d, %v", host, port, err)
	}
}

func TestAnotherNamespace(t *testing.T) {
	o, err := parse([]string{"--namespace=elsewhere", "--extra-dns-names", "localhost, gate.example.com", "--addr=127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"shipper-webhook.elsewhere.svc", "shipper-webhook.elsewhere.svc.cluster.local", "localhost", "gate.example.com",
	}
	if diff := cmp.Diff(want, o.names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if want := "system:serviceaccount:elsewhere:shipper-mgmt-cluster"; o.reconcilerUser != want {
		t.Errorf("reconciler %q, want %q", o.reconcilerUser, want)
	}
}

func TestFlagsThatCannotBeMeant(t *testing.T) {
	for flags, want := range map[string]string{
		"--certs=magic":           "--certs=magic: use self, cert-manager or files",
		"--certs=files":           "--certs=files needs --cert-dir",
		"--addr=9443":             "--addr=9443: address 9443: missing port in address",
		"--chart-repositories=x":  `--chart-repositories: "x" must begin with https:// or http://`,
		"--outgoing-urls=x":       `--outgoing-urls: "x" must begin with https:// or http://`,
		"--addr=:0":               "--addr=:0: the port must be a number from 1 to 65535",
		"--addr=:https":           "--addr=:https: the port must be a number from 1 to 65535",
		"--log-format=xml":        "--log-format=xml: use json or text",
		"--shutdown-delay=-1s":    "--shutdown-delay must not be negative",
		"--unhealthy-after=29s":   "--unhealthy-after=29s: must be from 30s to 24h0m0s",
		"--unhealthy-after=24h1s": "--unhealthy-after=24h0m1s: must be from 30s to 24h0m0s",
		"--unhealthy-after=30s":   "",
		"--pprof-port=-1":         "--pprof-port=-1: the port must be a number from 1 to 65535, or 0",
		"--pprof-port=65536":      "--pprof-port=65536: the port must be a number from 1 to 65535, or 0",
		"--placeable-kinds=x":     `--placeable-kinds: "x" is not a kind such as ConfigMap or Deployment.apps, nor a group such as *.example.com`,
		"--authority-lifetime=24h": "--certificate-lifetime and --authority-lifetime: the authority must live for three times " +
			"as long as a certificate (2160h0m0s) at least, not 24h0m0s",
		"--certificate-lifetime=1s": "--certificate-lifetime and --authority-lifetime: a certificate must live for 5s at least, not 1s",
		"serve":                     "unexpected arguments: serve",
		"--kubeconfig=/nonexistent": "",
	} {
		_, err := parse(strings.Fields(flags))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", flags, got, want)
		}
	}
}

func TestProfilesAreServedWhenAskedForAndToThisMachineAlone(t *testing.T) {
	for flags, want := range map[string]string{"": "", "--pprof-port=6060": "127.0.0.1:6060"} {
		o, err := parse(strings.Fields(flags))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.pprofAddr(); got != want {
			t.Errorf("%q: profiles are served on %q, want %q", flags, got, want)
		}
	}
}

func TestAKubeconfigThatIsMissing(t *testing.T) {
	o, err := parse([]string{"--kubeconfig=/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.restConfig(); err == nil || !strings.HasPrefix(err.Error(), "reading kubeconfig: ") {
		t.Errorf("got %v", err)
	}
}
