// SPDX-License-Identifier: Apache-2.0

// Package shipperctl runs the commands of shipperctl, in process, against the control planes of a fleet: set-up, join, guard, revoke,
// backup, clean, rollout status, chart render and doctor.
package shipperctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// The application clusters of the fleet.
const west, east = "eu-west-1", "us-east-1"

func TestMain(m *testing.M) {
	if err := fleet.Parallel(4); err != nil { // each fleet has two tests, the second of which waits for the first
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	two := fleet.Options{Applications: []string{west, east}}
	os.Exit(env.Main(m, env.Options{Fleet: two, SetUp: func(_ context.Context, e *env.Env) error {
		first.start = func(context.Context) (*fleet.Fleet, error) { return e.Fleet, nil }
		second.start = func(ctx context.Context) (*fleet.Fleet, error) {
			another, err := e.Another(ctx, "second-", two)
			return another.Fleet, err
		}
		return nil
	}}))
}

// sharedFleet is a fleet and the tests that use it, one after the other in the order of the source.
type sharedFleet struct {
	start func(context.Context) (*fleet.Fleet, error)
	last  chan struct{} // closed when the test that came last has ended
	fleet *fleet.Fleet
}

// The fleets, and that of each test by the name of the test.
var (
	first, second = &sharedFleet{}, &sharedFleet{}

	fleetOfTest sync.Map
)

// run runs the parts of a test. Each part starts from what the ones before have made of the clusters.
func (s *sharedFleet) run(t *testing.T, parts []part) {
	t.Helper()
	before, ended := s.last, make(chan struct{})
	s.last = ended // tests come here one after the other, until they are parallel
	t.Cleanup(func() { close(ended) })
	fleetOfTest.Store(t.Name(), s)
	t.Parallel()
	if before != nil {
		<-before
	}
	if s.fleet == nil {
		var err error
		if s.fleet, err = s.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range parts {
		t.Run(p.name, p.run)
	}
}

// fleetOf is the fleet of a test.
func fleetOf(t *testing.T) *fleet.Fleet {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	s, is := fleetOfTest.Load(name)
	if !is {
		t.Fatalf("%s has no fleet", name)
	}
	return s.(*sharedFleet).fleet
}

// part is a part of a test.
type part struct {
	name string
	run  func(*testing.T)
}

// TestSetUpAndJoin makes a fleet of clusters that know nothing of Shipper.
func TestSetUpAndJoin(t *testing.T) {
	first.run(t, []part{
		{"before setup", beforeSetup},
		{"setup management", setupManagement},
		{"setup management again writes nothing", setupManagementAgainWritesNothing},
		{"setup management of another context", setupManagementOfAnotherContext},
		{"setup management brings rights up to date", setupManagementBringsRightsUpToDate},
		{"setup management keeps the authority of the webhooks", setupManagementKeepsTheAuthorityOfTheWebhooks},
		{"setup management elsewhere", setupManagementElsewhere},
		{"join", join},
		{"join fails closed when the webhook answers", joinFailsClosed},
		{"join gives a token that ends", joinGivesATokenThatEnds},
		{"join again writes nothing", joinAgainWritesNothing},
		{"setup after join keeps the policy", setupAfterJoinKeepsThePolicy},
		{"join with changed fields", joinWithChangedFields},
		{"join one and the same", joinOneAndTheSame},
		{"join renews the token of a new account", joinRenewsTheTokenOfANewAccount},
		{"join trusts what stands before the API server", joinTrustsWhatStandsBeforeTheAPIServer},
		{"join keeps a client certificate", joinKeepsAClientCertificate},
		{"join with a guard", joinWithAGuard},
		{"join with a guard again writes nothing", joinWithAGuardAgainWritesNothing},
		{"join with another break-glass group", joinWithAnotherBreakGlassGroup},
		{"join repairs the guard", joinRepairsTheGuard},
		{"join reports what is wrong", joinReportsWhatIsWrong},
		{"join from two places", joinFromTwoPlaces},
		{"the guard knows all accounts", theGuardKnowsAllAccounts},
		{"join takes the guard away", joinTakesTheGuardAway},
		{"a guard needs policies", aGuardNeedsPolicies},
		{"the flags of the guard are checked", theFlagsOfTheGuardAreChecked},
		{"what shipper may in the management cluster", whatShipperMayInTheManagementCluster},
		{"what shipper may write into Secrets", whatShipperMayWriteIntoSecrets},
		{"what shipper may in an application cluster", whatShipperMayInAnApplicationCluster},
		{"a chart grants only what shipper holds", aChartGrantsOnlyWhatShipperHolds},
		{"administrators grant more by a label", administratorsGrantMoreByALabel},
		{"setup management lets Shipper read what is placed", setupManagementLetsShipperReadWhatIsPlaced},
		{"join lets Shipper place Namespaces", joinLetsShipperPlaceNamespaces},
		{"grants are of names, for another account", grantsAreOfNamesForAnotherAccount},
	})
}

// TestRevoke takes the credentials of clusters away. The API servers cache authentications for ten seconds.
func TestRevoke(t *testing.T) {
	first.run(t, []part{
		{"join both", joinBoth},
		{"a token that does not end gives way to one that does", aTokenThatDoesNotEndGivesWay},
		{"revoke leaves other management clusters alone", revokeLeavesOtherManagementClustersAlone},
		{"revoke without a context", revokeWithoutAContext},
		{"revoke reports what it cannot", revokeReportsWhatItCannot},
	})
}

// TestOperate is the life of a fleet that is set up.
func TestOperate(t *testing.T) {
	second.run(t, []part{
		{"join both", joinBoth},
		{"join one and the same", joinOneAndTheSame},
		{"join keeps a client certificate", joinKeepsAClientCertificate},
		{"join from another namespace", joinFromAnotherNamespace},
		{"backup and restore", backUpAndRestore},
		{"clean decommissioned clusters", cleanDecommissionedClusters},
		{"list releases", listReleases},
		{"clean finalizers", cleanFinalizers},
		{"rollout status waits", rolloutStatusWaits},
		{"look after clusters", lookAfterClusters},
		{"doctor", examine},
		{"chart render", renderCharts},
	})
}

// TestInterruptedAfterEveryWrite interrupts the commands that set a fleet up.
func TestInterruptedAfterEveryWrite(t *testing.T) {
	second.run(t, []part{{"interrupted after every write", interruptedAfterEveryWrite}})
}

// TestUninstall removes Shipper from all clusters by the commands of docs/install.md. It is the last of its fleet.
func TestUninstall(t *testing.T) {
	second.run(t, []part{{"join both", joinBoth}, {"uninstall", uninstall}})
}

// joinBoth sets up the management cluster and joins both application clusters, for a test that begins with that.
func joinBoth(t *testing.T) {
	succeeds(t, "setup", "management")
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
}

// joinFromAnotherNamespace joins a cluster a second time, with its credentials in another namespace.
func joinFromAnotherNamespace(t *testing.T) {
	creates(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
	succeeds(t, "join", "-n", "elsewhere", "--application-cluster-service-account", "second", "--webhook-ignore", "-f",
		file(t, "applicationClusters:\n- {name: west-again, context: eu-west-1, region: eu-west}\n"))
}

// run runs shipperctl and returns what it writes.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runIn(t, fleetOf(t).Kubeconfig, args...)
}

// runIn runs shipperctl with a kubeconfig and returns what it writes.
func runIn(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetArgs(append([]string{"clusters"}, append(args, "--kubeconfig", kubeconfig)...))
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// prints runs shipperctl, which must succeed and write want.
func prints(t *testing.T, want string, args ...string) {
	t.Helper()
	got, err := run(t, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), got); diff != "" {
		t.Errorf("shipperctl %s (-want +got)\n%s", strings.Join(args, " "), diff)
	}
}

// succeeds runs shipperctl, which must succeed, and returns what it writes.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	got, err := run(t, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	return got
}

// fails runs shipperctl, which must fail with an error that contains want.
func fails(t *testing.T, want string, args ...string) {
	t.Helper()
	out, err := run(t, args...)
	if err == nil {
		t.Fatalf("it succeeded:\n%s", out)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("the error is\n%v\nand should contain\n%s", err, want)
	}
}

// file writes a clusters.yaml and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// connect returns a client that reads and writes every kind of the tests.
func connect(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), shipper.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// management returns the administrator's client of the management cluster.
func management(t *testing.T) client.Client {
	t.Helper()
	return connect(t, fleetOf(t).Management.Config)
}

// application returns the administrator's client of an application cluster.
func application(t *testing.T, name string) client.Client {
	t.Helper()
	for _, c := range fleetOf(t).Applications {
		if c.Name == name {
			return connect(t, c.Config)
		}
	}
	t.Fatalf("there is no cluster %s", name)
	return nil
}

// get reads an object that must be there.
func get[T client.Object](t *testing.T, c client.Client, o T, namespace, name string) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// policies returns the failurePolicy of every webhook in the management cluster, without repetition. Those that are never
// anything but Ignore, or but Fail, are left out when they are.
func policies(t *testing.T) string {
	t.Helper()
	c := management(t)
	seen := map[admissionregistrationv1.FailurePolicyType]bool{}
	v := get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
	for _, w := range v.Webhooks {
		lenient := strings.HasPrefix(w.Name, "collected.") || strings.HasPrefix(w.Name, "namespace.")
		strict := strings.HasPrefix(w.Name, "envelope.") || strings.HasPrefix(w.Name, "resourcesnapshot.")
		switch is := *w.FailurePolicy; {
		case lenient && is == admissionregistrationv1.Ignore, strict && is == admissionregistrationv1.Fail:
		default:
			seen[is] = true
		}
	}
	m := get(t, c, &admissionregistrationv1.MutatingWebhookConfiguration{}, "", shipper.GroupName)
	for _, w := range m.Webhooks {
		seen[*w.FailurePolicy] = true
	}
	return strings.TrimPrefix(fmt.Sprint(seen), "map")
}

// versions returns the resource version, or what is as good as that, of everything that shipperctl may write, in every cluster.
func versions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, cluster := range fleetOf(t).Clusters() {
		c := connect(t, cluster.Config)
		for _, list := range []client.ObjectList{
			&apiextensionsv1.CustomResourceDefinitionList{}, &corev1.NamespaceList{},
			&corev1.ServiceAccountList{}, &corev1.SecretList{},
			&corev1.ServiceList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
			&rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
			&admissionregistrationv1.ValidatingWebhookConfigurationList{},
			&admissionregistrationv1.MutatingWebhookConfigurationList{},
			&admissionregistrationv1.ValidatingAdmissionPolicyList{},
			&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &shipper.ClusterList{},
			&flowcontrolv1.PriorityLevelConfigurationList{},
		} {
			if _, is := list.(*shipper.ClusterList); is && cluster != fleetOf(t).Management {
				continue
			}
			if err := c.List(t.Context(), list); err != nil && !meta.IsNoMatchError(err) {
				t.Fatal(err)
			}
			err := meta.EachListItem(list, func(item runtime.Object) error {
				o, err := meta.Accessor(item)
				if err == nil {
					key := fmt.Sprintf("%s: %T %s/%s", cluster.Name, o, o.GetNamespace(), o.GetName())
					found[key] = o.GetResourceVersion()
					if _, is := o.(*admissionregistrationv1.ValidatingAdmissionPolicy); is { // Kubernetes writes its status, soon
						found[key] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetAnnotations())
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}
