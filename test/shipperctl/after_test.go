// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// lookAfterClusters is the life of a cluster: it is checked, breaks, is mended, drained by the commands that drain prints, and
// removed. It leaves eu-west-1 alone in the fleet.
func lookAfterClusters(t *testing.T) {
	c := management(t)
	var releases shipper.ReleaseList
	if err := c.List(t.Context(), &releases); err != nil {
		t.Fatal(err)
	}
	for i := range releases.Items {
		ended(t, &releases.Items[i])
	}
	ended(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "us"}}) // it had a client certificate
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
	for _, name := range []string{"mgmt", "west-again"} {
		holds(t, works(t, "clusters", "remove", name), "cluster "+name+" is removed")
	}
	eventually(t, func() string {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "shipper-system", Name: "mgmt"}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			return "the Secret did not go with its Cluster"
		}
		return ""
	})
	check(t)
	refuses(t, "", "not found", "clusters", "cordon", "nowhere")
	holds(t, works(t, "clusters", "cordon", "us"), "cluster us is cordoned, until the next `clusters join`")
	before := versions(t)
	holds(t, works(t, "clusters", "cordon", "us"), "cluster us is cordoned already\n")
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("to cordon a cluster again has written\n%s", diff)
	}
	holds(t, works(t, "clusters", "uncordon", "us"), "cluster us is open for new Releases, until")
	drain(t)
}

// check breaks what a cluster is reached by, one thing after the other.
func check(t *testing.T) {
	c := management(t)
	us := get(t, c, &shipper.Cluster{}, "", "us")
	holds(t, works(t, "clusters", "check", "us"), "warning  cluster us (v1.", "Shipper has not looked at it since it was changed last")
	seen(t, us)
	if out := works(t, "clusters", "check", "us"); !strings.HasPrefix(out, "ok       cluster us (v1.") {
		t.Errorf("a cluster that is well:\n%s", out)
	}
	secret := get(t, c, &corev1.Secret{}, "shipper-system", "us")
	differs(t, secret, func() { secret.Data["token"] = []byte("none of yours") }, func() {
		holds(t, refuses(t, "", "cluster us cannot be used", "clusters", "check", "us"),
			"BROKEN   cluster us: the API server at "+us.Spec.APIMaster+" does not accept the credentials in the Secret",
			"do:  join it again: shipperctl clusters join")
	})
	differs(t, secret, func() { secret.Data["ca.crt"] = []byte("none") }, func() {
		holds(t, refuses(t, "", "cluster us cannot be used", "clusters", "check", "us"), "has a CA that is not a PEM certificate")
	})
	differs(t, us, func() { us.Spec.APIMaster = "https://127.0.0.1:1" }, func() {
		holds(t, refuses(t, "", "cluster us cannot be used", "clusters", "check", "us"),
			"BROKEN   cluster us: the API server at https://127.0.0.1:1 does not answer", "whether its API server is up")
	})
	seen(t, us)
	app := application(t, east)
	role := get(t, app, &rbacv1.ClusterRole{}, "", "shipper:application-cluster")
	was := role.DeepCopy()
	role.Rules = role.Rules[:len(role.Rules)-1]
	if err := app.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		out, err := shipperctl(t, "", "", "clusters", "check", "us")
		if err == nil || !strings.Contains(out, "Shipper's account may not:\n                get,list,watch namespaces\n") {
			return "the right that was taken is not told of:\n" + out
		}
		return ""
	})
	role.Rules = was.Rules
	if err := app.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if out, err := shipperctl(t, "", "", "clusters", "check", "us"); err != nil {
			return out
		}
		return ""
	})
}

// drain moves the Releases of a cluster by the commands that drain prints, and removes the cluster.
func drain(t *testing.T) {
	c := management(t)
	moves, alone := open(t, "moves", "eu-west-1,us"), open(t, "alone", "us")
	holds(t, works(t, "clusters", "list"),
		"CLUSTER     REGION    READY               SCHEDULING   WEIGHT   CAPABILITIES   RELEASES   VERSION\n"+
			"eu-west-1   eu-west   not looked at yet   on           50       gpu            1          -\n"+
			"us          us-east   yes                 on           100      -              2          v1.37.1\n")
	refuses(t, "", "2 releases are placed on cluster us: alone/"+alone.rel.Name+", moves/"+moves.rel.Name, "clusters", "remove", "us")
	out := refuses(t, "", "2 releases that may have pods are still placed on cluster us", "clusters", "drain", "us")
	holds(t, out, "cluster us is cordoned", "it has no other cluster, and none of this region is there to take it")
	follow(t, out, 1)
	more := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us-2"}}
	more.Spec.Region, more.Spec.APIMaster = "us-east", "https://127.0.0.1:1"
	creates(t, more)
	out = refuses(t, "", "1 releases that may have pods are still placed on cluster us", "clusters", "drain", "us")
	follow(t, out, 2)
	for s, want := range map[*shop]string{&moves: "eu-west-1", &alone: "us-2"} {
		if got := get(t, c, &shipper.Release{}, s.namespace.Name, s.rel.Name).Annotations[shipper.ReleaseClustersAnnotation]; got != want {
			t.Errorf("the Release of %s is on %s", s.namespace.Name, got)
		}
	}
	holds(t, works(t, "clusters", "drain", "us"), "cluster us is cordoned already\nno release is placed on cluster us\n")
	holds(t, works(t, "clusters", "remove", "us"),
		"its entry in clusters.yaml", "kubectl delete serviceaccount shipper-app-cluster -n shipper-system")
	holds(t, works(t, "clusters", "remove", "us-2", "--force"), "what 1 releases run there: it runs on")
	holds(t, works(t, "clusters", "list"), "us-2        -         there is no Cluster")
}

// follow runs the commands to annotate in an output; there must be so many.
func follow(t *testing.T, out string, want int) {
	t.Helper()
	kubectl, err := fleet.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "kubectl" || words[1] != "annotate" {
			continue
		}
		count++
		command := exec.CommandContext(t.Context(), kubectl, append(words[1:], "--kubeconfig", fleetOf(t).Kubeconfig)...)
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, said)
		}
	}
	if count != want {
		t.Errorf("%d commands are told, and not %d:\n%s", count, want, out)
	}
}

// differs changes an object while something is done, and makes it again what it was.
func differs(t *testing.T, o client.Object, change, while func()) {
	t.Helper()
	c := management(t)
	was := o.DeepCopyObject().(client.Object)
	change()
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	while()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	was.SetResourceVersion(o.GetResourceVersion())
	if err := c.Update(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
}

// seen writes of a Cluster what the reconciler writes of one that it reaches.
func seen(t *testing.T, cluster *shipper.Cluster) {
	t.Helper()
	cluster.Status = shipper.ClusterStatus{
		ObservedGeneration: cluster.Generation, InService: true, KubernetesVersion: "v1.37.1", Conditions: conditions(shipper.ClusterReady),
	}
	if err := management(t).Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// holds reports which texts an output lacks.
func holds(t *testing.T, out string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(out, want) {
			t.Errorf("the output is\n%s\nand should contain\n%s", out, want)
		}
	}
}
