// SPDX-License-Identifier: Apache-2.0

package troubleshooting

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// patience bounds every wait. Nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

// appName is the Application of every test.
const appName = "super-server"

// user is a user with kubectl and a namespace of their own.
type user struct {
	*testing.T
	ctx       context.Context
	namespace string
}

// begin makes a namespace for the test in both clusters.
func begin(t *testing.T) *user {
	u := &user{T: t, ctx: t.Context()}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "trouble-"}}
	u.must("creating a namespace", world.management.Create(u.ctx, ns))
	u.namespace = ns.Name
	u.must("creating the namespace", world.cluster.Create(u.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := u.run(context.Background(), "", "get", "app,rel,it,ct,tt,events", "-o", "wide")
			t.Logf("what there was:\n%s\nreconciler:\n%s", out, world.pod.Reconciler.Tail())
		}
	})
	return u
}

func (u *user) must(doing string, err error) {
	u.Helper()
	if err != nil {
		u.Fatalf("%s: %v", doing, err)
	}
}

// run runs kubectl in the user's namespace of the management cluster.
func (u *user) run(ctx context.Context, stdin string, args ...string) (string, error) {
	return u.with(ctx, stdin, append(args, "--kubeconfig", world.fleet.Management.Kubeconfig, "-n", u.namespace)...)
}

// with runs kubectl with these arguments and no others.
func (u *user) with(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, world.kubectl, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// kubectl runs kubectl and returns what it says.
func (u *user) kubectl(args ...string) string {
	u.Helper()
	out, err := u.run(u.ctx, "", args...)
	if err != nil {
		u.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// applies applies a manifest.
func (u *user) applies(manifest string) string {
	u.Helper()
	out, err := u.run(u.ctx, manifest, "apply", "-f", "-")
	if err != nil {
		u.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
	return out
}

// eventually looks until expected is seen, or fails with both.
func (u *user) eventually(what, expected string, look func() (string, error)) {
	u.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		seen, err := look()
		if err == nil && seen == expected {
			return
		}
		select {
		case <-deadline.C:
			u.Fatalf("%s, within %s:\n  expected: %s\n  seen:     %s (error: %v)", what, patience, expected, seen, err)
		case <-tick.C:
		}
	}
}

// awaits waits, as the documentation says, with kubectl wait.
func (u *user) awaits(object, condition string) {
	u.Helper()
	u.kubectl("wait", "--for=condition="+condition, object, "--timeout="+patience.String())
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
      regions: [{name: %s}]
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
`, appName, version, repository, region, tag)
}

// newest is the name of the newest Release, once there are this many.
func (u *user) newest(count int) string {
	u.Helper()
	var name string
	u.eventually("number of releases", fmt.Sprint(count), func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: appName}, app)
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
	u.must("reading "+name, world.management.Get(u.ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, into))
}

// serving counts the Pods of a Release that are behind the Service.
func (u *user) serving(release string) int {
	u.Helper()
	slices, pods := &discoveryv1.EndpointSliceList{}, &corev1.PodList{}
	u.must("listing endpoints", world.cluster.List(u.ctx, slices, client.InNamespace(u.namespace)))
	u.must("listing pods", world.cluster.List(u.ctx, pods, client.InNamespace(u.namespace),
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
