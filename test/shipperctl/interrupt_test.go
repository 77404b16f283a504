// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// interruptedAfterEveryWrite makes a fleet of nothing twice, from a backup: undisturbed, and by commands that Ctrl-C ends
// after each of their writes, or each tenth (stride), and that are run again. Both must come to the same.
func interruptedAfterEveryWrite(t *testing.T) {
	for _, o := range []client.Object{&appsv1.Deployment{}, &coordinationv1.Lease{}} { // Shipper is down
		if err := management(t).DeleteAllOf(t.Context(), o, client.InNamespace("shipper-system")); err != nil {
			t.Fatal(err)
		}
	}
	succeeds(t, "setup", "management", "--webhook-ignore")
	s := open(t, "torn", "eu-west-1")
	freeze := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "torn", Name: "freeze"}}
	freeze.Spec.Message = "not now"
	creates(t, freeze)
	metav1.SetMetaDataAnnotation(&s.app.ObjectMeta, shipper.RolloutBlockOverrideAnnotation, "torn/freeze")
	if err := management(t).Update(t.Context(), s.app); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup.yaml")
	works(t, "backup", "prepare", "--include-clusters", "--include-rollout-blocks", "-f", path)
	clusters := file(t, both(t))
	made := map[string]map[string]any{}
	for _, way := range []string{"undisturbed", "interrupted"} {
		undo(t)
		d := newDoor(t)
		writes := 0
		for _, args := range [][]string{
			{"clusters", "setup", "management", "-g", "blocks-" + way},
			{"backup", "restore", "--yes", "-f", path},
			{"clusters", "join", "-f", clusters, "--guard"},
		} {
			if way == "undisturbed" {
				if out, err := d.run(t, func(string) bool { return false }, args); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				continue
			}
			n := d.tear(t, args)
			t.Logf("%v was interrupted %d times", args[:2], n)
			writes += n
		}
		if way == "interrupted" && writes < 40/stride() {
			t.Errorf("the commands were interrupted %d times only", writes)
		}
		made[way] = stored(t, "blocks-"+way)
	}
	if diff := cmp.Diff(made["undisturbed"], made["interrupted"]); diff != "" {
		t.Errorf("what commands make that are interrupted (-undisturbed +interrupted)\n%s", diff)
	}
}

// door is a way to the clusters of the fleet by which writes are seen.
type door struct {
	kubeconfig string
	written    func(what string) // after each write, before its response
}

// newDoor puts a server before each API server of the fleet.
func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{kubeconfig: filepath.Join(t.TempDir(), "config"), written: func(string) {}}
	config := clientcmdapi.NewConfig()
	for _, cluster := range fleetOf(t).Clusters() {
		server := d.before(t, cluster)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		config.Clusters[cluster.Name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
		config.AuthInfos[cluster.Name] = &clientcmdapi.AuthInfo{}
		config.Contexts[cluster.Name] = &clientcmdapi.Context{Cluster: cluster.Name, AuthInfo: cluster.Name}
	}
	config.CurrentContext = fleetOf(t).Management.Name
	if err := clientcmd.WriteToFile(*config, d.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *door) before(t *testing.T, cluster *fleet.Cluster) *httptest.Server {
	t.Helper()
	target, err := neturl.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	administrator, err := rest.TransportFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			response, err := administrator.RoundTrip(r)
			if err == nil && response.StatusCode < http.StatusMultipleChoices && writes(r) {
				d.written(r.Method + " " + cluster.Name + r.URL.Path)
			}
			return response, err
		}),
	})
	t.Cleanup(server.CloseClientConnections)
	return server
}

// writes reports whether something is stored when a request is granted. A token is not.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" &&
		!strings.HasSuffix(r.URL.Path, "/token") && !strings.HasSuffix(r.URL.Path, "reviews")
}

// run runs shipperctl through the door, and interrupts it after writes that when says so of.
func (d *door) run(t *testing.T, when func(what string) bool, args []string) (string, error) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	d.written = func(what string) {
		if when(what) {
			interrupt()
		}
	}
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(slices.Clone(args), "--kubeconfig", d.kubeconfig))
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// stride is after how many writes a command is interrupted: after each in `make nightly`.
func stride() int {
	if env.IsNightly() {
		return 1
	}
	return 10
}

// tear runs a command again and again, each time until it has written something, or so much as stride says, until it ends. It returns how
// often it was interrupted.
func (d *door) tear(t *testing.T, args []string) int {
	t.Helper()
	const enough = 200
	done := map[string]bool{}
	var mu sync.Mutex
	for n := range enough {
		interrupted, fresh := false, 0
		out, err := d.run(t, func(what string) bool {
			mu.Lock()
			defer mu.Unlock()
			// An update without a change, as of webhooks, stores nothing.
			if strings.HasPrefix(what, http.MethodPost) || !done[what] {
				fresh++
			}
			done[what] = true
			interrupted = interrupted || fresh >= stride()
			return interrupted
		}, args)
		switch {
		case !interrupted && err == nil:
			return n
		case !interrupted || err != nil && cli.ExitCode(err) != cli.Interrupted:
			t.Fatalf("%v, interrupted %d times before: %v\n%s", args, n, err, out)
		}
	}
	t.Fatalf("%v does not come to an end: it was run %d times", args, enough)
	return 0
}

// ours are the kinds that the commands write, in the order in which they can be deleted.
var ours = []schema.GroupVersionKind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	shipper.GroupVersion.WithKind("TrafficTarget"), shipper.GroupVersion.WithKind("CapacityTarget"),
	shipper.GroupVersion.WithKind("InstallationTarget"), shipper.GroupVersion.WithKind("Release"),
	shipper.GroupVersion.WithKind("Application"), shipper.GroupVersion.WithKind("RolloutBlock"), shipper.GroupVersion.WithKind("Cluster"),
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "ServiceAccount"},
}

// each calls do for every object in the fleet that is Shipper's.
func each(t *testing.T, kinds []schema.GroupVersionKind, do func(cluster string, c client.Client, o *unstructured.Unstructured)) {
	t.Helper()
	for _, cluster := range fleetOf(t).Clusters() {
		c := connect(t, cluster.Config)
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			err := c.List(t.Context(), list)
			if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			for i := range list.Items {
				o := &list.Items[i]
				isSecret := kind.Kind == "Secret" && o.GetNamespace() == "shipper-system"
				if kind.Group == shipper.GroupName || strings.Contains(o.GetName(), "shipper") || isSecret {
					do(cluster.Name, c, o)
				}
			}
		}
	}
}

// undo deletes all that is Shipper's, but for namespaces.
func undo(t *testing.T) {
	t.Helper()
	eventually(t, func() string { // blocks hold, until API servers have noted that they are gone
		left := ""
		each(t, ours, func(cluster string, c client.Client, o *unstructured.Unstructured) {
			if len(o.GetFinalizers()) > 0 {
				_ = c.Patch(t.Context(), o.DeepCopy(), unkept) // until it is gone, it is tried again
			}
			if err := c.Delete(t.Context(), o); !apierrors.IsNotFound(err) {
				left += fmt.Sprintf("%s: %s %s is still there: %v\n", cluster, o.GetKind(), o.GetName(), err)
			}
		})
		return left
	})
}

// stored is all that is Shipper's, without what differs from one time to the next, and with the namespace of global blocks as
// it is usually called.
func stored(t *testing.T, global string) map[string]any {
	t.Helper()
	out := map[string]any{}
	kinds := append(slices.Clone(ours), schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	each(t, kinds, func(cluster string, _ client.Client, o *unstructured.Unstructured) {
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		owners := o.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = ""
		}
		o.SetOwnerReferences(owners)
		if o.GroupVersionKind().Group != shipper.GroupName {
			unstructured.RemoveNestedField(o.Object, "status")
		}
		switch {
		case o.GetKind() == "Service":
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
		case o.GetKind() == "ClusterRole" && o.Object["aggregationRule"] != nil:
			unstructured.RemoveNestedField(o.Object, "rules") // filled in by the cluster, when it comes to it
		case o.GetKind() == "Secret":
			if token, there, _ := unstructured.NestedString(o.Object, "data", "token"); there && token != "" {
				_ = unstructured.SetNestedField(o.Object, "one", "data", "token")
			}
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), global, shipper.GlobalBlocksNamespace)), &plain); err != nil {
			t.Fatal(err)
		}
		namespace := strings.ReplaceAll(o.GetNamespace(), global, shipper.GlobalBlocksNamespace)
		out[fmt.Sprintf("%s: %s %s/%s", cluster, o.GetKind(), namespace, o.GetName())] = plain
	})
	return out
}
