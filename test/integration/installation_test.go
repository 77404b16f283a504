// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestInstallsInEveryCluster(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"replicaCount": 3}, west, east)
	it := s.installed("web-1")

	var status []string
	for _, c := range it.Status.Clusters {
		status = append(status, c.Name+" "+c.Status)
	}
	if diff := cmp.Diff([]string{"east Installed", "west Installed"}, status); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range []string{west, east} {
		d := s.deployment(c, "web-1")
		if d == nil || *d.Spec.Replicas != 0 {
			t.Fatalf("%s: Deployment %v has not 0 replicas", c, d)
		}
		var anchor corev1.ConfigMap
		if !s.find(c, "web-1-anchor", &anchor) || anchor.Data[shipper.AnchorTargetUIDKey] != string(it.UID) {
			t.Errorf("%s: the anchor is not as it should be: %v", c, anchor.Data)
		}
		if len(d.OwnerReferences) != 1 || d.OwnerReferences[0].UID != anchor.UID {
			t.Errorf("%s: the anchor does not own the Deployment: %v", c, d.OwnerReferences)
		}
	}
}

func TestWritesNothingThatIsAlreadySo(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	versions := func() []string {
		var anchor corev1.ConfigMap
		var service corev1.Service
		s.find(west, "web-1-anchor", &anchor)
		s.find(west, "test-nginx-prod", &service)
		return []string{anchor.ResourceVersion, service.ResourceVersion}
	}
	before := versions()
	s.takeOver("web-1", false) // a change that makes it look again
	s.installed("web-1")
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("something was written: -before +after:\n%s", diff)
	}
}

func TestDeletedObjectsComeBack(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.must(world.clusters[west].Delete(s.ctx, s.deployment(west, "web-1")))
	s.must(world.clusters[west].Delete(s.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: "test-nginx-prod",
	}}))
	s.soon("they do not come back", func() string {
		d := s.deployment(west, "web-1")
		if d == nil || d.DeletionTimestamp != nil || !s.find(west, "test-nginx-prod", &corev1.Service{}) {
			return "something is still missing"
		}
		return ""
	})
}

func TestInstallsNothingWhereAnObjectIsSomebodyElses(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	theirs := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "test-nginx-prod"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}},
	}
	s.must(world.clusters[west].Create(s.ctx, theirs))
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)

	message := s.notInstalled("web-1", west, shipper.ObjectConflict)
	if want := `Service "test-nginx-prod" cannot be installed: it was not installed by Shipper`; message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	s.soon("the other cluster is not installed", func() string {
		if s.deployment(east, "web-1") == nil {
			return "no Deployment"
		}
		return ""
	})
	if s.deployment(west, "web-1") != nil {
		t.Errorf("something was installed beside a foreign object")
	}
	var now corev1.Service
	if s.find(west, theirs.Name, &now); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("a foreign Service was written: %+v", now)
	}
	s.must(world.clusters[west].Delete(s.ctx, theirs))
	s.installed("web-1")
}

func TestWaitsForTheNamespace(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	message := s.notInstalled("web-1", west, shipper.NamespaceMissing)
	if !strings.Contains(message, s.namespace) {
		t.Errorf("the message does not name the namespace: %q", message)
	}
	never := s.install("web-2", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.notInstalled("web-2", west, shipper.NamespaceMissing)
	s.must(world.management.Delete(s.ctx, never)) // which ends the waiting, too
	s.gone(never)
	s.makeNamespace(world.clusters[west])
	s.installed("web-1")
}

func TestNamesTheKindThatIsUnknown(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "unknown-kind", "0.0.1", shipper.ChartValues{}, west)
	message := s.notInstalled("web-1", west, shipper.ChartError)
	if !strings.Contains(message, "CustomResourceDefinition for Gadget in example.com/v1") {
		t.Errorf("the message does not name the kind: %q", message)
	}
}

func TestSaysWhatIsWrongWithAChart(t *testing.T) {
	t.Parallel()
	for chart, reason := range map[string]string{
		"no-deployment": shipper.WrongChartDeployments, "broken-template": shipper.ChartError,
		"not-gzip": shipper.BrokenChartSpec, "not-there": shipper.BrokenChartSpec,
	} {
		t.Run(chart, func(t *testing.T) {
			s := begin(t, west)
			s.install("web-1", chart, "0.0.1", shipper.ChartValues{}, west)
			if message := s.notInstalled("web-1", west, reason); message == "" {
				t.Error("there is no message")
			}
		})
	}
}

func TestUninstallsEverywhereBeforeATargetGoes(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	// Of both clusters, in whatever order they were cleaned.
	for _, c := range []string{west, east} {
		if s.deployment(c, "web-1") != nil || s.find(c, "web-1-anchor", &corev1.ConfigMap{}) ||
			s.find(c, "test-nginx-prod", &corev1.Service{}) {
			t.Errorf("%s: something was left behind", c)
		}
		s.hears("web-1", "Normal ConfigMapDeleted", fmt.Sprintf("Config map %q has been deleted from cluster %q", "web-1-anchor", c))
	}
}

// hears waits for an event about an object of that name, with a type, reason and a note, alone or among others of one moment.
func (s *fixture) hears(name, what, note string) {
	s.Helper()
	s.soon("it is not reported: "+note, func() string {
		var events corev1.EventList
		s.must(world.management.List(s.ctx, &events, client.InNamespace(s.namespace)))
		var seen []string
		for _, e := range events.Items {
			if e.InvolvedObject.Name == name {
				seen = append(seen, e.Type+" "+e.Reason+": "+e.Message)
			}
			if e.InvolvedObject.Name == name && e.Type+" "+e.Reason == what && strings.Contains(e.Message, note) {
				return ""
			}
		}
		return strings.Join(seen, "\n")
	})
}

// gone waits until the management cluster no longer has an object.
func (s *fixture) gone(object client.Object) {
	s.Helper()
	s.soon(object.GetName()+" does not go", func() string {
		err := s.management.Get(s.ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, %+v", err, object)
	})
}

func TestLeavesAClusterThatIsTakenOff(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	it := s.installed("web-1")
	s.change(it, func(client.Object) { it.Spec.Clusters = []string{east} })
	s.soon("west is not left", func() string {
		s.must(s.management.Get(s.ctx, s.key("web-1"), it))
		if s.deployment(west, "web-1") != nil || len(it.Status.Clusters) != 1 {
			return fmt.Sprintf("%+v", it.Status)
		}
		return ""
	})
	if s.installed("web-1"); s.deployment(east, "web-1") == nil {
		t.Error("east lost its Deployment too")
	}
}

func TestCleansUpAClusterThatWasDown(t *testing.T) {
	s := begin(t, west, east)
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	s.must(s.management.Delete(s.ctx, it))
	s.notInstalled("web-1", west, shipper.ClusterUnreachable)
	s.soon("the cluster that is up is not cleaned", func() string {
		if s.deployment(east, "web-1") != nil {
			return "there is still a Deployment"
		}
		return ""
	})
	s.mended(west)
	s.gone(it)
	if s.deployment(west, "web-1") != nil {
		t.Error("the cluster that was down still has the Deployment")
	}
}

func TestGivesUpAClusterThatIsNoMore(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.lend(clusterSecret("brief", west))
	brief := aCluster("brief", west)
	s.must(s.management.Create(s.ctx, brief))
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, "brief")
	s.installed("web-1")
	s.must(s.management.Delete(s.ctx, brief))
	message := s.notInstalled("web-1", "brief", shipper.TargetClusterClientError)
	if want := `there is no Cluster "brief"`; message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if s.deployment(west, "web-1") == nil {
		t.Error("an unreachable object should stay")
	}
}

func TestGivesUpAClusterThatIsNoMoreAfterAWhile(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	const finalizer = "test.example.com/wait"
	s.lend(clusterSecret("lingering", west))
	lingering := aCluster("lingering", west)
	lingering.Finalizers = []string{finalizer}
	s.must(s.management.Create(s.ctx, lingering))
	it := s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, lingering.Name)
	s.installed("web-1")
	s.must(s.management.Delete(s.ctx, lingering, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	message := s.notInstalled("web-1", lingering.Name, shipper.TargetClusterClientError)
	if want := `Cluster "lingering" is being deleted`; message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	s.must(s.management.Delete(s.ctx, it))
	s.soon("the target does not wait for the Cluster", func() string {
		s.must(s.management.Get(s.ctx, s.key("web-1"), it))
		if it.Status.ObservedGeneration == it.Generation {
			return ""
		}
		return fmt.Sprintf("%+v", it.Status)
	})
	s.change(lingering, func(o client.Object) { o.SetFinalizers(nil) })
	s.gone(it)
}

func TestAdoptsWhatTheOriginalInstalled(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	labels := map[string]string{
		shipper.AppLabel: "web", shipper.ReleaseLabel: "web-1", shipper.OwnedByLabel: "web-1", "app": "test-nginx",
	}
	anchor := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-1-anchor", Labels: labels},
		Data:       map[string]string{shipper.AnchorTargetUIDKey: "that-of-another-life"},
	}
	s.must(world.clusters[west].Create(s.ctx, anchor))
	three := int32(3)
	running := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "web-1-test-nginx", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: anchor.Name, UID: anchor.UID},
			},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "old", Image: "old:1"}}},
			},
		},
	}
	s.must(world.clusters[west].Create(s.ctx, running))
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	it := s.installed("web-1")

	d := s.deployment(west, "web-1")
	if diff := cmp.Diff(running.Spec, d.Spec); diff != "" || d.UID != running.UID {
		t.Errorf("the running Deployment was touched: %s", diff)
	}
	if d.Annotations[shipper.InstalledDigestAnnotation] == "" {
		t.Error("the Deployment is not marked")
	}
	var now corev1.ConfigMap
	adopted := func() bool {
		return now.UID == anchor.UID && now.Data[shipper.AnchorTargetUIDKey] == string(it.UID)
	}
	if !s.find(west, anchor.Name, &now) || !adopted() {
		t.Errorf("the anchor was not adopted: %+v", now)
	}
}

func TestSharedObjectsFollowTheNewestReleaseAndComeBackOnAbort(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "configmap", "0.0.1", shipper.ChartValues{"message": "one"}, west)
	s.installed("web-1")
	s.takeOver("web-1", false)
	contender := s.install("web-2", "configmap", "0.0.1", shipper.ChartValues{"message": "two"}, west)
	s.installed("web-2")
	says := func(want string) func() string {
		return func() string {
			var settings corev1.ConfigMap
			if !s.find(west, "configmap-settings", &settings) || settings.Data["message"] != want {
				return fmt.Sprintf("the settings are %v", settings.Data)
			}
			return ""
		}
	}
	if wrong := says("two")(); wrong != "" {
		t.Errorf("the newest release did not take over: %s", wrong)
	}
	var settings corev1.ConfigMap
	s.find(west, "configmap-settings", &settings)
	var owners []string
	for _, ref := range settings.OwnerReferences {
		owners = append(owners, ref.Name)
	}
	slices.Sort(owners)
	if diff := cmp.Diff([]string{"web-1-anchor", "web-2-anchor"}, owners); diff != "" {
		t.Errorf("owners: -want +got:\n%s", diff)
	}

	s.must(s.management.Delete(s.ctx, contender))
	s.takeOver("web-1", true)
	s.gone(contender)
	s.soon("the settings are not those of the incumbent", says("one"))
}

func TestObjectsWithoutANamespaceGoWithTheLastTargetThatListsThem(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	values := shipper.ChartValues{"nameOverride": s.namespace}
	incumbent := s.install("web-1", "cluster-scoped", "0.0.1", values, west)
	s.installed("web-1")
	s.takeOver("web-1", false)
	contender := s.install("web-2", "cluster-scoped", "0.0.1", values, west)
	s.installed("web-2")
	role := client.ObjectKey{Name: s.namespace + "-reader"}

	s.must(s.management.Delete(s.ctx, contender))
	s.gone(contender)
	if err := world.clusters[west].Get(s.ctx, role, &rbacv1.ClusterRole{}); err != nil {
		t.Errorf("the ClusterRole that the incumbent lists: %v", err)
	}
	s.takeOver("web-1", true)
	s.soon("the incumbent does not take it back", func() string {
		var now rbacv1.ClusterRole
		s.must(world.clusters[west].Get(s.ctx, role, &now))
		if now.Labels[shipper.OwnedByLabel] == "web-1" {
			return ""
		}
		return fmt.Sprint(now.Labels)
	})
	s.must(s.management.Delete(s.ctx, incumbent))
	s.gone(incumbent)
	if err := world.clusters[west].Get(s.ctx, role, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole is left behind: %v", err)
	}
}
