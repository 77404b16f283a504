// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	testenv "shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// appName is the Application of every test.
const appName = "super-server"

// user is a user with kubectl and a namespace of their own.
type user struct {
	testenv.Rollout
	*follower
	program string // kubectl
}

// begin makes a namespace for the test in all clusters. Tests run in parallel.
func begin(t *testing.T) *user {
	t.Helper()
	quickStart(t)
	t.Parallel()
	kubectl, err := fleet.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	follower := follows(t)
	u := &user{Rollout: *world.env.Begin(t, "trouble-", appName), follower: follower, program: kubectl}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := u.run(context.Background(), "", "get", "app,rel,it,ct,tt,events", "-o", "wide")
			t.Logf("what there was:\n%s", out)
		}
	})
	return u
}

// run runs kubectl in the user's namespace of the management cluster.
func (u *user) run(ctx context.Context, stdin string, args ...string) (string, error) {
	return u.with(ctx, stdin, append(args, "--kubeconfig", world.fleet.Management.Kubeconfig, "-n", u.Namespace)...)
}

// with runs kubectl with these arguments and no others.
func (u *user) with(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, u.program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// kubectl runs kubectl and returns what it says.
func (u *user) kubectl(args ...string) string {
	u.Helper()
	out, err := u.run(u.Ctx, "", args...)
	if err != nil {
		u.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// applies applies a manifest.
func (u *user) applies(manifest string) string {
	u.Helper()
	out, err := u.run(u.Ctx, manifest, "apply", "-f", "-")
	if err != nil {
		u.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
	return out
}

// awaits waits, as the documentation says, with kubectl wait.
func (u *user) awaits(object, condition string) {
	u.Helper()
	u.kubectl("wait", "--for=condition="+condition, object, "--timeout="+testenv.Patience.String())
}

// application is a manifest: six replicas, two steps, and an image's tag that decides what becomes of its Pods.
func (u *user) application(repository, version, tag string) string {
	return fmt.Sprintf(`
apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  template:
    chart: {name: test-nginx, version: %s, repoUrl: %s}
    clusterRequirements:
      regions: [{name: eu-west}]
    strategy:
      steps:
      - name: staging
        capacity: {contender: 1, incumbent: 100}
        traffic: {contender: 0, incumbent: 100}
      - name: full on
        capacity: {contender: 100, incumbent: 0}
        traffic: {contender: 100, incumbent: 0}
    values:
      replicaCount: 6
      image: {tag: %s}
`, appName, version, repository, tag)
}

// newest is the name of the newest Release, once there are this many.
func (u *user) newest(count int) string {
	u.Helper()
	var name string
	u.Eventually("number of releases", fmt.Sprint(count), func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: appName}, app)
		if n := len(app.Status.History); n > 0 {
			name = app.Status.History[n-1]
		}
		return fmt.Sprint(len(app.Status.History)), err
	})
	return name
}

// moves sets the target step of a Release.
func (u *user) moves(release string, step int) {
	u.Helper()
	u.kubectl("patch", "rel", release, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"targetStep":%d}}`, step))
}

// completes brings a Release to its last step, without waiting at the first.
func (u *user) completes(release string) {
	u.Helper()
	u.moves(release, 1)
	u.awaits("rel/"+release, "Complete")
}

// get reads an object of the user's namespace.
func (u *user) get(name string, into client.Object) {
	u.Helper()
	u.Must("reading "+name, world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: name}, into))
}

// serving counts the Pods of a Release that are behind the Service.
func (u *user) serving(release string) int {
	u.Helper()
	slices, pods := &discoveryv1.EndpointSliceList{}, &corev1.PodList{}
	u.Must("listing endpoints", world.applications[west].List(u.Ctx, slices, client.InNamespace(u.Namespace)))
	u.Must("listing pods", world.applications[west].List(u.Ctx, pods, client.InNamespace(u.Namespace),
		client.MatchingLabels{shipper.ReleaseLabel: release}))
	mine, n := map[string]bool{}, 0
	for _, p := range pods.Items {
		mine[p.Name] = true
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && mine[e.TargetRef.Name] && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				n++
			}
		}
	}
	return n
}

// probe reports whether a change is admitted in the user's namespace.
func (u *user) probe() (string, error) {
	out, err := u.with(context.Background(), u.application(u.Env.Charts.URL, "0.0.1", "stable"), "apply", "--dry-run=server", "-f", "-",
		"--kubeconfig", world.fleet.Management.Kubeconfig, "-n", u.Namespace)
	if err != nil {
		return out, nil
	}
	return "admitted", nil
}
