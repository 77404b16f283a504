// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/test/fleet"
)

// uninstall runs the commands of docs/install.md, those for eu-west-1 for the other cluster, too. A Deployment and its anchor stand for
// what runs.
func uninstall(t *testing.T) {
	for _, o := range []client.Object{&appsv1.Deployment{}, &coordinationv1.Lease{}} { // Shipper is down
		if err := management(t).DeleteAllOf(t.Context(), o, client.InNamespace("shipper-system")); err != nil {
			t.Fatal(err)
		}
	}
	open(t, "kept", "eu-west-1")
	running := map[string]string{}
	for _, name := range []string{west, east} {
		running[name] = installed(t, breakingGlass(t, name))
	}
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore", "--guard")

	for _, command := range documented(t, "## Uninstalling") {
		runAsDocumented(t, command)
		if strings.Contains(command, west) {
			runAsDocumented(t, strings.ReplaceAll(command, west, east))
		}
	}

	eventually(t, func() string {
		var left []string
		for _, c := range fleetOf(t).Clusters() {
			for _, found := range leftovers(t, c.Config) {
				left = append(left, c.Name+": "+found)
			}
		}
		return strings.Join(left, "\n")
	})
	for _, name := range []string{west, east} {
		d := get(t, application(t, name), &appsv1.Deployment{}, "kept", "web")
		if string(d.UID) != running[name] || d.DeletionTimestamp != nil || len(d.OwnerReferences) > 0 {
			t.Errorf("the Deployment in %s does not run on as it was: %+v", name, d.ObjectMeta)
		}
	}
}

// breakingGlass is a client of an application cluster whose guard lets it pass: tests before this one may have installed that.
func breakingGlass(t *testing.T, name string) client.Client {
	t.Helper()
	for _, c := range fleetOf(t).Applications {
		if c.Name == name {
			config := rest.CopyConfig(c.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: "oncall", Groups: []string{"system:masters", "shipper:break-glass"}}
			return connect(t, config)
		}
	}
	t.Fatalf("there is no cluster %s", name)
	return nil
}

// installed makes a Deployment and the anchor that owns it, and returns the UID of the Deployment.
func installed(t *testing.T, c client.Client) string {
	t.Helper()
	labels := map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: "web-1", shipper.OwnedByLabel: "web-1"}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "kept", Name: name, Labels: labels}
	}
	anchor := &corev1.ConfigMap{ObjectMeta: meta(shipper.AnchorName("web-1")), Data: map[string]string{shipper.AnchorTargetUIDKey: "1"}}
	anchor.Finalizers = []string{shipper.AnchorFinalizer}
	web := &appsv1.Deployment{ObjectMeta: meta("web")}
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	web.Spec.Template.Labels = labels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx:1"}}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), anchor); err != nil {
		t.Fatal(err)
	}
	web.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: anchor.Name, UID: anchor.UID}}
	if err := c.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	return string(web.UID)
}

// documented are the commands of a section of docs/install.md.
func documented(t *testing.T, section string) (out []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n"+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for _, command := range strings.Split(strings.TrimSpace(block[1]), "$ ")[1:] {
			out = append(out, strings.TrimSpace(command))
		}
	}
	if len(out) < 10 {
		t.Fatalf("the section has the commands %q", out)
	}
	return out
}

// runAsDocumented runs a command in a shell, or in process if it is one of shipperctl.
func runAsDocumented(t *testing.T, command string) {
	t.Helper()
	if args, own := strings.CutPrefix(command, "shipperctl "); own {
		works(t, strings.Fields(args)...)
		return
	}
	kubectl, err := fleet.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	sh := exec.CommandContext(t.Context(), "sh", "-e", "-c", command)
	sh.Env = append(os.Environ(), "KUBECONFIG="+fleetOf(t).Kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// leftovers lists what is Shipper's in a cluster, of all kinds: by a label, by the name of an anchor, or because the manifests have it.
func leftovers(t *testing.T, config *rest.Config) (out []string) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	known := manifested(t)
	c := connect(t, config)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if version.Group == shipper.GroupName {
				out = append(out, "the kind "+kind.Kind)
			}
			if !slices.Contains(kind.Verbs, "list") || version.Group == shipper.GroupName {
				continue
			}
			var all metav1.PartialObjectMetadataList
			all.SetGroupVersionKind(version.WithKind(kind.Kind))
			if err := c.List(t.Context(), &all); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				t.Fatal(err)
			}
			for _, o := range all.Items {
				if name := kind.Kind + " " + o.Name; known[name] || strings.HasSuffix(name, "-anchor") || labelled(o.Labels) {
					out = append(out, name+" in "+o.Namespace)
				}
			}
		}
	}
	return out
}

// labelled reports whether an object has a label of what is installed. What runs keeps other labels.
func labelled(labels map[string]string) bool {
	for _, key := range []string{shipper.RBACDomainLabel, "shipper.booking.com/guard"} {
		if _, has := labels[key]; has {
			return true
		}
	}
	return labels["app.kubernetes.io/name"] == "shipper"
}

// manifested are the kinds and names of all objects of the manifests.
func manifested(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, folder := range []string{manifests.CRD, manifests.RBAC, manifests.Webhook, manifests.Deploy, manifests.Policy, manifests.Guard} {
		objects, err := manifests.Objects(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			out[o.GetKind()+" "+o.GetName()] = true
		}
	}
	return out
}
