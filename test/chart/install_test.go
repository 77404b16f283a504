// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/original"
)

const (
	system       = "shipper-system"
	globalBlocks = "rollout-blocks-global"
)

// management is installed in again and again, fresh once.
var management, fresh *fleet.Cluster

func TestMain(m *testing.M) {
	const name = "fresh"
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{Applications: []string{name}, Podless: []string{name}},
		SetUp: func(_ context.Context, e *env.Env) error {
			management, fresh = e.Fleet.Management, e.Fleet.Applications[0]
			return nil
		},
	}))
}

// TestInstalling installs Shipper in one cluster in all three ways, one over the other. Each part starts from what the ones
// before have made of the cluster.
func TestInstalling(t *testing.T) {
	i := &installation{T: t, content: map[string]map[string]any{}}
	var err error
	if i.admin, err = management.Client(nil); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		run  func(*installation)
	}{
		{"over the original", overTheOriginal},
		{"by shipperctl", byShipperctl},
		{"by kubectl over shipperctl", byKubectlOverShipperctl},
		{"the overlay applies again", func(i *installation) { i.appliesAgain("default") }},
		{"shipperctl over kubectl writes nothing", shipperctlWritesNothing},
		{"the Pod is admitted where only restricted ones are", podIsAdmitted},
		{"requests of the account have a priority level of their own", requestsAreSharedOut},
		{"by Helm over both", byHelmOverBoth},
		{"shipperctl over Helm writes nothing", shipperctlWritesNothing},
		{"Helm upgrades to other values", helmUpgrades},
		{"Helm says how the gate stands", helmSaysHowTheGateStands},
		{"Helm rolls back", helmRollsBack},
		{"Helm uninstalls and keeps what is the users'", helmUninstalls},
		{"Helm installs over what it has kept", helmInstallsAgain},
		{"by kubectl for three replicas", byKubectlForThree},
		{"the overlay for three replicas applies again", func(i *installation) { i.appliesAgain("ha") }},
		{"shipperctl over that writes nothing", shipperctlWritesNothing},
		{"by kubectl with cert-manager", byKubectlWithCertManager},
		{"shipperctl over that writes nothing, too", shipperctlWritesNothing},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			now := *i
			now.T = t
			part.run(&now)
		})
		if !ok {
			return
		}
	}
}

// installation is Shipper's in the cluster.
type installation struct {
	*testing.T

	admin client.Client
	// content of installations that were made before, by name.
	content map[string]map[string]any
}

func overTheOriginal(i *installation) {
	for _, leave := range []func(context.Context, *fleet.Cluster) error{original.Kinds, original.SetUp, original.Deploy} {
		if err := leave(i.Context(), management); err != nil {
			i.Fatal(err)
		}
	}
	// kubectl alone does not take it over.
	_, err := i.tryKubectl("apply", "--server-side", "--force-conflicts", "-k", filepath.Join(manifests, "overlays", "default"))
	for _, words := range []string{`"shipper:management-cluster" is invalid: roleRef`, `"shipper" is invalid: spec.selector`} {
		if err == nil || !strings.Contains(err.Error(), words) {
			i.Errorf("applied over the original, the overlay is not refused because %q: %v", words, err)
		}
	}
	i.shipperctl()
	i.each(installed[:1], func(key string, o *unstructured.Unstructured) {
		if keeps, _, _ := unstructured.NestedBool(o.Object, "spec", "preserveUnknownFields"); keeps {
			i.Errorf("%s keeps unknown fields", key)
		}
	})
	i.kubectl("delete", "deployment/shipper", "service/shipper-validating-webhook", "secret/shipper-validating-webhook", "-n", system)
	i.shipperctl("--webhook-ignore")
}

func byShipperctl(i *installation) {
	// Nothing listens there, which is noticed at once: writes pass unjudged.
	i.shipperctl("--webhook-url", "https://localhost:1")
	i.create(`{apiVersion: v1, kind: Namespace, metadata: {name: team}}`)
	i.create(`{apiVersion: shipper.booking.com/v1alpha1, kind: RolloutBlock, metadata: {namespace: team, name: freeze},
		spec: {message: freeze, author: {type: user, name: ann}}}`)
	i.create(`
apiVersion: shipper.booking.com/v1alpha1
kind: Cluster
metadata: {name: eu-west-1}
spec: {region: eu-west, apiMaster: "https://127.0.0.1:1"}
`)
	i.shipperctl("--webhook-url", "") // what no flag names stays
	i.othersWrite()
	i.writesNothing("setting up again", func() { i.shipperctl() })
}

func byKubectlOverShipperctl(i *installation) {
	overlay := filepath.Join(manifests, "overlays", "default")
	_, err := i.tryKubectl("apply", "--server-side", "-k", overlay)
	if err == nil {
		i.Error("kubectl has changed the failurePolicy without being allowed to")
	}
	for line := range strings.Lines(fmt.Sprint(err)) {
		one := strings.Contains(line, `conflict with "`) // one conflict is reported in a line, several in one each
		if (one || strings.HasPrefix(line, "- .")) && !strings.HasSuffix(line, "].failurePolicy\n") {
			i.Errorf("another conflict than about failurePolicy: %s", line)
		}
	}
	i.kubectl("apply", "--server-side", "-k", filepath.Join(manifests, "deploy"))
	i.kubectl("apply", "--server-side", "--force-conflicts", "-k", overlay)
	i.is("Fail")
	i.content["default"] = i.all()
	if n := len(i.content["default"]); n < 25 {
		i.Errorf("there are %d objects only", n)
	}
	i.keptByOthers()
}

func shipperctlWritesNothing(i *installation) {
	i.writesNothing("setting up", func() { i.shipperctl() })
}

func podIsAdmitted(i *installation) {
	out := i.kubectl("get", "pods", "-n", system, "-o", "jsonpath={.items[*].spec.priority}")
	if out != "1000000000 1000000000" {
		i.Errorf("the priorities of the Pods are %q", out)
	}
	_, err := i.tryKubectl("run", "anybody", "-n", system, "--image=nginx", "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		i.Errorf("a Pod that is not restricted: %v", err)
	}
}

// requestsAreSharedOut asks as the reconciler's account until the API server has taken in the FlowSchemas.
func requestsAreSharedOut(i *installation) {
	as := rest.CopyConfig(management.Config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + system + ":shipper-mgmt-cluster",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
	}
	asked, err := rest.HTTPClientFor(as)
	if err != nil {
		i.Fatal(err)
	}
	for path, schema := range map[string]string{
		"/apis/shipper.booking.com/v1alpha1/namespaces/team/releases": "shipper",
		"/api/v1/nodes": "shipper",
		"/apis":         "shipper",
		"/apis/coordination.k8s.io/v1/namespaces/" + system + "/leases/shipper-reconciler": "shipper-leader-election",
	} {
		want := i.kubectl("get", "flowschema", schema, "-o", "jsonpath={.metadata.uid}")
		env.Eventually(i, "the FlowSchema "+schema+" of "+path, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, management.Config.Host+path, http.NoBody)
			if err != nil {
				return err
			}
			answer, err := asked.Do(request)
			if err != nil {
				return err
			}
			if got := answer.Header.Get(flowcontrol.ResponseHeaderMatchedFlowSchemaUID); got != want {
				err = fmt.Errorf("it has the one with the uid %q, want %q", got, want)
			}
			return errors.Join(err, answer.Body.Close())
		})
	}
}

func byHelmOverBoth(i *installation) {
	i.helm("")
	i.same("default")
	i.keptByOthers()
}

func helmUpgrades(i *installation) {
	i.helm("{replicas: 3, spreadOverHosts: DoNotSchedule}")
	i.content["ha"] = i.all()
	if cmp.Equal(i.content["default"], i.content["ha"], cmpopts.EquateEmpty()) {
		i.Error("other values have made no difference")
	}
	i.keptByOthers()
}

func helmSaysHowTheGateStands(i *installation) {
	i.shipperctl("--webhook-ignore")
	i.helm("{replicas: 3, networkPolicy: {enabled: true}}")
	i.is("Fail")
	i.kubectl("get", "networkpolicy", "shipper", "-n", system)
	i.helm("{replicas: 3, failurePolicy: Ignore}")
	i.is("Ignore")
	i.keptByOthers()
}

func helmRollsBack(i *installation) {
	rollback := action.NewRollback(i.actions())
	rollback.Version = 1
	if err := rollback.Run("shipper"); err != nil {
		i.Fatal(err)
	}
	i.same("default")
	i.keptByOthers()
}

func helmUninstalls(i *installation) {
	if _, err := action.NewUninstall(i.actions()).Run("shipper"); err != nil {
		i.Fatal(err)
	}
	i.keepsOnly("CustomResourceDefinition ", "Namespace ")
	for kind, name := range map[string]string{"Cluster": "/eu-west-1", "RolloutBlock": "team/freeze"} {
		namespace, name, _ := strings.Cut(name, "/")
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "shipper.booking.com", Version: "v1alpha1", Kind: kind})
		if err := i.admin.Get(i.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			i.Errorf("%s %s: %v", kind, name, err)
		}
	}
}

func helmInstallsAgain(i *installation) {
	i.helm("")
	i.same("default")
	helmUninstalls(i)
}

func byKubectlForThree(i *installation) {
	i.kubectl("apply", "--server-side", "-k", filepath.Join(manifests, "overlays", "ha"))
	i.same("ha")
	i.othersWrite()
}

func byKubectlWithCertManager(i *installation) {
	for _, kind := range []string{"Certificate", "Issuer"} {
		i.create(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]ss}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, strings.ToLower(kind), kind))
		i.kubectl("wait", "--for=condition=Established", "crd/"+strings.ToLower(kind)+"s.cert-manager.io", "--timeout=30s")
	}
	i.kubectl("apply", "--server-side", "-k", filepath.Join(manifests, "overlays", "cert-manager"))
	i.keptByOthers()
}

// helm does `helm upgrade --install --create-namespace --take-ownership` with values.
func (i *installation) helm(values string) {
	i.Helper()
	chart, err := loader.Load(filepath.Join(manifests, "chart"))
	if err != nil {
		i.Fatal(err)
	}
	given := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(values), &given); err != nil {
		i.Fatal(err)
	}
	actions := i.actions()
	if history, err := actions.Releases.History("shipper"); err != nil || len(history) == 0 {
		install := action.NewInstall(actions)
		install.ReleaseName, install.Namespace, install.CreateNamespace, install.TakeOwnership = "shipper", system, true, true
		if _, err := install.RunWithContext(i.Context(), chart, given); err != nil {
			i.Fatal(err)
		}
		return
	}
	upgrade := action.NewUpgrade(actions)
	upgrade.Namespace, upgrade.TakeOwnership = system, true
	if _, err := upgrade.RunWithContext(i.Context(), "shipper", chart, given); err != nil {
		i.Fatal(err)
	}
}

// actions are Helm's, as its command has them.
func (i *installation) actions() *action.Configuration {
	i.Helper()
	flags, namespace := genericclioptions.NewConfigFlags(false), system
	flags.KubeConfig, flags.Namespace = &management.Kubeconfig, &namespace
	actions := &action.Configuration{}
	if err := actions.Init(flags, system, "secret", func(string, ...any) {}); err != nil {
		i.Fatal(err)
	}
	return actions
}

// shipperctl sets the cluster up.
func (i *installation) shipperctl(flags ...string) {
	i.Helper()
	setUp(i.T, management, flags...)
}

// setUp sets a cluster up with shipperctl.
func setUp(t *testing.T, in *fleet.Cluster, flags ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetArgs(append([]string{"clusters", "setup", "management", "--kube-config", in.Kubeconfig}, flags...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func (i *installation) tryKubectl(args ...string) (string, error) {
	return kubectlOn(i.Context(), management, args...)
}

func (i *installation) kubectl(args ...string) string {
	i.Helper()
	out, err := i.tryKubectl(args...)
	if err != nil {
		i.Fatal(err)
	}
	return out
}

// kubectlOn runs kubectl on a cluster and returns what it writes.
func kubectlOn(ctx context.Context, in *fleet.Cluster, args ...string) (string, error) {
	path, err := fleet.Kubectl()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, append(args, "--kubeconfig", in.Kubeconfig)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// create creates an object.
func (i *installation) create(text string) {
	i.Helper()
	o := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal([]byte(text), &o.Object); err != nil {
		i.Fatal(err)
	}
	if err := i.admin.Create(i.Context(), o); err != nil {
		i.Fatal(err)
	}
}

// keepsOnly fails when there is anything whose key begins with none of these.
func (i *installation) keepsOnly(prefixes ...string) {
	i.Helper()
	var left []string
	for key := range i.all() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			left = append(left, key)
		}
	}
	slices.Sort(left)
	if len(left) > 0 {
		i.Errorf("these are left:\n%s", strings.Join(left, "\n"))
	}
}

// same fails unless the installation is what it was at another time.
func (i *installation) same(as string) {
	i.Helper()
	if diff := cmp.Diff(i.content[as], i.all(), cmpopts.EquateEmpty()); diff != "" {
		i.Errorf("it differs from what was %q (-want +got):\n%s", as, diff)
	}
}
