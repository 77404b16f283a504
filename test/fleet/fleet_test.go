// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/await"
)

// shared is the fleet of most tests of this package.
var shared *Fleet

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		os.Exit(beVictim(dir))
	}
	o := Options{Applications: []string{"app"}, OwnEtcd: []string{"app"}, CRDs: []string{"testdata"}, Progress: os.Stderr}
	var err error
	if shared, err = Start(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "starting the fleet:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the fleet:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// app returns a client of the shared application cluster.
func app(t *testing.T) client.Client { return clientOf(t, shared.Applications[0]) }

// clientOf returns a client of a cluster's administrator.
func clientOf(t *testing.T, cluster *Cluster) client.Client {
	t.Helper()
	c, err := cluster.Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates objects.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// namespace creates a namespace for a test.
func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, c, ns)
	return ns.Name
}

// deployment returns a Deployment of one container.
func deployment(namespace, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "it"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "it"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}

// pods returns the Pods of a deployment of this file.
func pods(ctx context.Context, c client.Client, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "it"})
	return list.Items, err
}

func TestTheFleetIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.LoadFromFile(shared.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var contexts []string
	for name := range config.Contexts {
		contexts = append(contexts, name)
	}
	slices.Sort(contexts)
	if diff := cmp.Diff([]string{"app", "mgmt"}, contexts); diff != "" {
		t.Error("contexts (-want +got):\n" + diff)
	}
	if config.CurrentContext != "mgmt" {
		t.Errorf("current context is %q, want mgmt", config.CurrentContext)
	}
	for _, cluster := range shared.Clusters() {
		version, err := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config).ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		// The programs' folder has the version's name, unless it is the user's own.
		want := filepath.Base(cluster.programs)
		numbers := strings.Split(strings.TrimPrefix(want, "v"), ".")
		got := []string{version.Major, version.Minor, version.GitVersion}
		if diff := cmp.Diff([]string{numbers[0], numbers[1], want}, got); diff != "" && os.Getenv("KUBEBUILDER_ASSETS") == "" {
			t.Errorf("version of %s (-want +got):\n%s", cluster.Name, diff)
		}
	}
}

func TestAnOpenedFleetIsTheFleet(t *testing.T) {
	t.Parallel()
	f, err := Open(shared.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	var namespaces [2]corev1.Namespace
	for i, fleet := range []*Fleet{shared, f} {
		if len(fleet.Applications) != 1 || fleet.Applications[0].Name != "app" || fleet.Management.Name != "mgmt" {
			t.Fatalf("clusters are %v, want mgmt and app", fleet.Clusters())
		}
		key := client.ObjectKey{Name: "kube-system"}
		if err := clientOf(t, fleet.Management).Get(t.Context(), key, &namespaces[i]); err != nil {
			t.Fatal(err)
		}
	}
	if namespaces[0].UID != namespaces[1].UID {
		t.Error("it is another cluster")
	}
	if err := f.Management.StopAPIServer(); !errors.Is(err, errNotOurs) {
		t.Errorf("StopAPIServer: %v, want %v", err, errNotOurs)
	}
	if err := f.Management.RestartControllers(); !errors.Is(err, errNotOurs) {
		t.Errorf("RestartControllers: %v, want %v", err, errNotOurs)
	}
}

func TestADeploymentServes(t *testing.T) {
	t.Parallel()
	c := app(t)
	ns := namespace(t, c)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "it"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "it"},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
	create(t, c, service, deployment(ns, "nginx:1.27", 3))
	await.Eventually(t, "endpoints of all Pods", func(ctx context.Context) error {
		items, err := pods(ctx, c, ns)
		if err != nil {
			return err
		}
		var want, got []string
		for _, pod := range items {
			want = append(want, pod.Status.PodIP)
		}
		var slicesOf discoveryv1.EndpointSliceList
		if err := c.List(ctx, &slicesOf, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, slice := range slicesOf.Items {
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, false) {
					got = append(got, endpoint.Addresses...)
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(want))) != 3 || !slices.Equal(want, got) {
			return errors.New("addresses (-pods +endpoints):\n" + cmp.Diff(want, got))
		}
		return nil
	})
	var d appsv1.Deployment
	await.Eventually(t, "the Deployment to be available", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(service), &d); err != nil {
			return err
		}
		if d.Status.AvailableReplicas != 3 {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestTheTagOfAnImageDecides(t *testing.T) {
	t.Parallel()
	died := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	for tag, want := range map[string]struct {
		phase  corev1.PodPhase
		ready  corev1.ConditionStatus
		status corev1.ContainerStatus
	}{
		"1.0": {corev1.PodRunning, corev1.ConditionTrue, corev1.ContainerStatus{
			Ready: true, Started: ptr.To(true), State: running,
		}},
		"slow": {corev1.PodRunning, corev1.ConditionTrue, corev1.ContainerStatus{
			Ready: true, Started: ptr.To(true), State: running,
		}},
		"broken": {corev1.PodPending, corev1.ConditionFalse, corev1.ContainerStatus{
			Started: ptr.To(false),
			State:   waiting("ImagePullBackOff", `Back-off pulling image "nginx:broken"`),
		}},
		"crash": {corev1.PodRunning, corev1.ConditionFalse, corev1.ContainerStatus{
			Started: ptr.To(false), RestartCount: 1, LastTerminationState: died, State: waiting("CrashLoopBackOff", ""),
		}},
	} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			c := app(t)
			ns := namespace(t, c)
			create(t, c, deployment(ns, "nginx:"+tag, 1))
			want.status.Name, want.status.Image = "main", "nginx:"+tag
			await.Eventually(t, "the Pod to settle", func(ctx context.Context) error {
				items, err := pods(ctx, c, ns)
				if err != nil {
					return err
				}
				if len(items) != 1 || len(items[0].Status.ContainerStatuses) != 1 {
					return errors.New("no Pod has a status")
				}
				got := items[0].Status
				i := slices.IndexFunc(got.Conditions, func(condition corev1.PodCondition) bool {
					return condition.Type == corev1.PodReady
				})
				if i < 0 || got.Phase != want.phase || got.Conditions[i].Status != want.ready {
					return errors.New("phase and readiness are not there yet")
				}
				if tag == "crash" && got.ContainerStatuses[0].State.Waiting != nil {
					got.ContainerStatuses[0].State.Waiting.Message = "" // it names the Pod
				}
				if tag == "slow" && got.Conditions[i].LastTransitionTime.Sub(got.StartTime.Time) < 3*time.Second {
					t.Error("it was ready at once")
				}
				diff := cmp.Diff(want.status, got.ContainerStatuses[0],
					cmpopts.IgnoreTypes(metav1.Time{}), cmpopts.IgnoreFields(corev1.ContainerStatus{}, "ImageID"))
				if diff != "" {
					t.Fatal("container status (-want +got):\n" + diff)
				}
				return nil
			})
		})
	}
}

func TestAServiceAccountIsWhoItIs(t *testing.T) {
	t.Parallel()
	c := app(t)
	ns := namespace(t, c)
	create(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}})
	path, err := shared.Applications[0].ServiceAccountKubeconfig(t.Context(), ns, "robot")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	assertUser(t, config, "system:serviceaccount:"+ns+":robot")

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: "robot-token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	create(t, c, secret)
	await.Eventually(t, "the Secret's token", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			return errors.New("there is none yet")
		}
		return nil
	})
	config = &rest.Config{
		Host:            shared.Applications[0].Config.Host,
		BearerToken:     string(secret.Data[corev1.ServiceAccountTokenKey]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[corev1.ServiceAccountRootCAKey]},
	}
	assertUser(t, config, "system:serviceaccount:"+ns+":robot")
}
