// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters and their regions.
const (
	west, westRegion = "eu-west-1", "eu-west"
	east, eastRegion = "us-east-1", "us-east"
)

// world is the fleet that all tests of the package share. Each test has a namespace of its own in it.
var world struct {
	*env.Env

	inherited []*inheritance
}

func TestMain(m *testing.M) {
	if err := fleet.Parallel(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{Applications: []string{west, east}}, Binaries: env.Shipper(), SetUp: install, Check: rights,
	}))
}

// rarely lists rights that Shipper needs only in situations that no test here causes.
var rarely = []string{
	"patch events.events.k8s.io",                            // the same event repeats within minutes
	"create secrets shipper-webhook-cert in shipper-system", // the Secret was deleted
	"delete chartsnapshots.shipper.booking.com",             // an admission plugin checks it
	"delete sequenceruns.shipper.booking.com",               // history keeps twenty for 30 days
	"delete controllerrevisions.apps",                       // no run has one: reconciler/run
	"delete resourcesnapshots.shipper.booking.com",          // content was stored, and its Release was not created: test/simulation
	"get strategies.shipper.booking.com",                    // an Application takes one: test/admission, reconciler/rollout
	"list strategies.shipper.booking.com",                   // one that is named is not there: test/admission
	// With --certs=cert-manager, while there is no certificate: test/certmanager.
	"get certificates.cert-manager.io shipper-webhook in shipper-system",
}

// rights returns nil if no request of Shipper's was refused, with the rights that shipperctl granted it. If all tests have
// run, it also requires that Shipper used each of its rights.
func rights() error {
	var errs []error
	report := func(what string, rights []string, err error) {
		if errs = append(errs, err); len(rights) > 0 {
			errs = append(errs, fmt.Errorf("%s:\n  %s", what, strings.Join(rights, "\n  ")))
		}
	}
	refused, err := pod.Refused(world.Fleet.Management, shipper.ManagementServiceAccount)
	report("Shipper may not, in the management cluster", refused, err)
	for _, c := range world.Fleet.Applications {
		refused, err := pod.Refused(c, shipper.ApplicationServiceAccount)
		report("Shipper may not, in "+c.Name, refused, err)
	}
	if everything() {
		unused, err := pod.Unused(world.Fleet.Management)
		unused = slices.DeleteFunc(unused, func(right string) bool { return slices.Contains(rarely, right) })
		report("Shipper may, and never does, in the management cluster", unused, err)
	}
	return errors.Join(errs...)
}

// everything reports whether all of the tests have run.
func everything() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// install runs shipperctl on a fleet that the original has managed so far: all tests run on an installation that was taken
// over.
func install(ctx context.Context, e *env.Env) error {
	world.Env = e
	if err := inherit(ctx); err != nil {
		return err
	}
	if err := pod.SetUpManagement(ctx, e.Fleet, e.Dir, e.PodOptions.WebhookPort); err != nil {
		return err
	}
	if err := e.StartPod(ctx); err != nil {
		return err
	}
	if err := refusedInEveryCluster(ctx); err != nil {
		return err
	}
	return join(ctx)
}

// join joins both application clusters.
func join(ctx context.Context) error {
	clusters := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n- name: %s\n  region: %s\n",
		west, westRegion, east, eastRegion)
	file := filepath.Join(world.Dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return err
	}
	return pod.Shipperctl(ctx, world.Fleet, world.Dir, "clusters", "join", "-f", file)
}
