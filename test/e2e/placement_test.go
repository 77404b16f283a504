// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The cluster that joins the fleet for one test, and its region.
const south, southRegion = "ap-south-1", "ap-south"

// TestPlacementFollowsClusters is not parallel: a third cluster joins the fleet that all tests share, is labelled and tainted, and leaves.
func TestPlacementFollowsClusters(t *testing.T) {
	other, err := world.Another(context.Background(), "south-", fleet.Options{Applications: []string{south}})
	if err != nil {
		t.Fatal(err)
	}
	all, three := beginPlaced(t, other), beginPlaced(t, other)
	all.creates(shipper.Placement{})
	content := beginPlaced(t, other)
	content.placesContent()
	extra := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "extra"}}
	three.creates(shipper.Placement{Type: shipper.PickN, Count: ptr.To[int32](3), Affinity: &shipper.ClusterAffinity{
		Required: []shipper.ClusterTerm{{Names: []string{west, east}}, {LabelSelector: extra}},
	}})
	first, third := all.Release(0), three.Release(0)
	all.Completes(first)
	three.Completes(third)
	all.runsIn(first, west, east)
	three.runsIn(third, west, east)
	three.isScheduled(third, "False PlacementUnfulfilled 2 of 3 clusters")
	content.contentIsIn(west, east)

	all.joins()
	joined := time.Now()
	all.runsIn(first, west, east, south)
	t.Logf("the Application ran there %s after the cluster was ready; 5 s at most where the machine is not busy", time.Since(joined))
	all.Completes(first)
	all.Release(0) // and no other
	content.contentIsIn(west, east, south)
	content.Release(0)
	three.isScheduled(third, "2 of 3 clusters: "+south+": ")
	all.editsSouth(func(c *shipper.Cluster) { c.Labels = map[string]string{"tier": "extra"} })
	three.runsIn(third, west, east, south)
	three.isScheduled(third, "True")

	all.editsSouth(func(c *shipper.Cluster) {
		c.Spec.Taints = []shipper.ClusterTaint{{Key: "gpu", Value: "yes", Effect: shipper.TaintNoSchedule}}
	})
	all.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["note"] = "second" })
	second := all.Release(1)
	all.Completes(second)
	all.runsIn(second, west, east, south)
	all.runsIn(first)
	fresh := beginPlaced(t, other)
	fresh.creates(shipper.Placement{})
	newest := fresh.Release(0)
	fresh.Completes(newest)
	fresh.runsIn(newest, west, east)
	fresh.rejects(newest, shipper.PlacementTainted, south)
	all.editsSouth(func(c *shipper.Cluster) { c.Spec.Taints = nil })
	fresh.runsIn(newest, west, east, south)

	one := beginPlaced(t, other)
	one.creates(shipper.Placement{Type: shipper.PickN, Count: ptr.To[int32](1), Affinity: &shipper.ClusterAffinity{
		Required:  []shipper.ClusterTerm{{Names: []string{south, east}}},
		Preferred: []shipper.PreferredClusterTerm{{Weight: 100, ClusterTerm: shipper.ClusterTerm{Names: []string{south}}}},
	}})
	moved := one.Release(0)
	one.Completes(moved)
	one.runsIn(moved, south)
	served := one.serves(moved, south, east)
	one.leaves()
	one.runsIn(moved, east)
	if least := served(); least < 1 {
		t.Error("no Pod was ready while the cluster was replaced")
	}
	for _, s := range []*placed{all, three, fresh, one} {
		s.leftNothing()
	}
	content.contentIsIn(west, east)
	content.Release(0)
	one.isGone()
}

// placed is a test whose Application has a placement, in the fleet and the cluster that joins it.
type placed struct {
	*fixture

	other *env.Env
}

func beginPlaced(t *testing.T, other *env.Env) *placed {
	t.Helper()
	s := &placed{begin(t, nil, nil), other}
	s.Must("creating the namespace in "+south, other.Clusters[south].Create(s.Ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}))
	return s
}

// creates makes the Application, with one Pod in each cluster.
func (s *placed) creates(p shipper.Placement) {
	s.Helper()
	app := s.application("0.0.1", 1, allIn)
	app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &p}
	s.applies(app)
}

// placesContent makes an Application that places objects in its namespace, in another and in none, on every cluster.
func (s *placed) placesContent() {
	s.Helper()
	s.LetsSelect()
	for _, cluster := range []string{west, east, south} {
		s.Must("granting more in "+cluster, client.IgnoreAlreadyExists(s.in(cluster).Create(s.Ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: "e2e-content", Labels: map[string]string{"shipper.booking.com/aggregate-to-application": "true"}},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "get", "list", "watch", "patch", "delete"}},
				{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
					Verbs: []string{"create", "get", "list", "watch", "patch", "delete"}},
			},
		})))
	}
	manifest := func(apiVersion, kind, namespace, name string) shipper.Manifest {
		meta := map[string]any{"name": name}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		return shipper.Manifest{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	}
	s.Must("creating an Envelope", world.Management.Create(s.Ctx, &shipper.Envelope{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "content"},
		Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
			manifest("v1", "Namespace", "", s.Namespace+"-more"),
			manifest("v1", "ConfigMap", s.Namespace+"-more", "inside"),
			manifest(rbacv1.SchemeGroupVersion.String(), "ClusterRole", "", s.Namespace),
		}},
	}))
	s.Keeps("a", "1")
	app := s.Placing(nil, shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "content"})
	app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{}}
	s.applies(app)
}

// contentIsIn waits until all of the content is in these clusters, and nothing of it in others.
func (s *placed) contentIsIn(clusters ...string) {
	s.Helper()
	s.Eventually("the objects of the content", strings.Join(clusters, " 4 ")+" 4", func() (string, error) {
		var out []string
		for _, cluster := range []string{west, east, south} {
			n, err := s.contentIn(cluster)
			if err != nil {
				return "", err
			}
			if n > 0 {
				out = append(out, fmt.Sprint(cluster, " ", n))
			}
		}
		return strings.Join(out, " "), nil
	})
}

// contentIn counts the objects of the content in a cluster.
func (s *placed) contentIn(cluster string) (n int, err error) {
	more := s.Namespace + "-more"
	for key, o := range map[client.ObjectKey]client.Object{
		s.Key("a"):                        &corev1.ConfigMap{},
		{Name: more}:                      &corev1.Namespace{},
		{Namespace: more, Name: "inside"}: &corev1.ConfigMap{},
		{Name: s.Namespace}:               &rbacv1.ClusterRole{},
	} {
		if err := s.in(cluster).Get(s.Ctx, key, o); err == nil {
			n++
		} else if !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	return n, nil
}

// in is a client for a cluster.
func (s *placed) in(cluster string) client.Client {
	if cluster == south {
		return s.other.Clusters[south]
	}
	return world.Clusters[cluster]
}

// running are the clusters in which a Release has a ready Pod.
func (s *placed) running(release string) ([]string, error) {
	var out []string
	for _, name := range []string{west, east, south} {
		pods := &corev1.PodList{}
		err := s.in(name).List(s.Ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release})
		if err != nil {
			return nil, err
		}
		ready := func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && fleet.PodReady(&p) }
		if slices.ContainsFunc(pods.Items, ready) {
			out = append(out, name)
		}
	}
	return out, nil
}

// runsIn waits until a Release has ready Pods in these clusters and no others.
func (s *placed) runsIn(release string, clusters ...string) {
	s.Helper()
	s.Eventually("the clusters with Pods of "+release, strings.Join(clusters, " "), func() (string, error) {
		found, err := s.running(release)
		return strings.Join(found, " "), err
	})
}

// serves counts, until it is called again, the fewest clusters in which a Release had a ready Pod.
func (s *placed) serves(release string, clusters ...string) func() int {
	stop, least := make(chan struct{}), make(chan int)
	go func() {
		fewest := len(clusters)
		for {
			if found, err := s.running(release); err == nil {
				fewest = min(fewest, len(found))
			}
			select {
			case <-stop:
				least <- fewest
				return
			default:
			}
		}
	}()
	return func() int { close(stop); return <-least }
}

// isScheduled waits for a part of the condition Scheduled.
func (s *placed) isScheduled(release, part string) {
	s.Helper()
	s.Eventually("whether "+release+" is scheduled", part, func() (string, error) {
		rel, err := s.Get(release)
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseScheduled)
		if c == nil {
			return "unknown", err
		}
		if said := strings.TrimSpace(fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)); !strings.Contains(said, part) {
			return said, err
		}
		return part, err
	})
}

// rejects waits until status.placement says why a Release does not have a cluster.
func (s *placed) rejects(release string, reason shipper.PlacementReason, cluster string) {
	s.Helper()
	want := fmt.Sprintf("1 %s: [%s]", reason, cluster)
	s.Eventually("the clusters that "+release+" does not have", want, func() (string, error) {
		rel, err := s.Get(release)
		if err != nil || rel.Status.Placement == nil {
			return "", err
		}
		var said []string
		for _, r := range rel.Status.Placement.Rejected {
			said = append(said, fmt.Sprintf("%d %s: %v", r.Count, r.Reason, r.Examples))
		}
		return strings.Join(said, ", "), nil
	})
}

// joins joins south, and waits until it is ready.
func (s *placed) joins() {
	s.Helper()
	file := filepath.Join(world.Dir, "south.yaml")
	text := fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", south, southRegion)
	s.Must("writing clusters.yaml", os.WriteFile(file, []byte(text), 0o600))
	both := &fleet.Fleet{Kubeconfig: world.Fleet.Kubeconfig + string(os.PathListSeparator) + s.other.Fleet.Kubeconfig}
	s.Must("joining "+south, pod.Shipperctl(s.Ctx, both, world.Dir, "clusters", "join", "-f", file))
	s.Cleanup(func() { // when the test has failed before
		c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: south}}
		_ = world.Management.Delete(context.Background(), c)
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = world.Management.Patch(context.Background(), c, free)
	})
	s.Eventually("whether "+south+" is ready", "true", func() (string, error) {
		c := &shipper.Cluster{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Name: south}, c)
		return fmt.Sprintf("%t", shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterReady)), err
	})
}

// editsSouth changes the Cluster.
func (s *placed) editsSouth(change func(*shipper.Cluster)) {
	s.Helper()
	c := &shipper.Cluster{}
	s.Must("reading "+south, world.Management.Get(s.Ctx, client.ObjectKey{Name: south}, c))
	was := c.DeepCopy()
	change(c)
	s.Must("changing "+south, world.Management.Patch(s.Ctx, c, client.MergeFrom(was)))
}

// leaves deletes the Cluster, of which everything is to be removed.
func (s *placed) leaves() {
	s.Helper()
	s.editsSouth(func(c *shipper.Cluster) {
		c.Spec.OnLeave = shipper.OnLeaveRemove
	})
	s.Eventually("the finalizers of "+south, "1", func() (string, error) {
		c := &shipper.Cluster{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Name: south}, c)
		return fmt.Sprint(len(c.Finalizers)), err
	})
	s.Must("deleting "+south, world.Management.Delete(s.Ctx, &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: south}}))
}

// leftNothing waits until nothing that Shipper placed for the Application is in south.
func (s *placed) leftNothing() {
	s.Helper()
	s.Eventually("what is left in "+south, "", func() (string, error) {
		var left []string
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}} {
			if err := s.in(south).List(s.Ctx, list, client.InNamespace(s.Namespace), client.HasLabels{shipper.AppLabel}); err != nil {
				return "", err
			}
			for _, o := range itemsOf(list) {
				left = append(left, fmt.Sprintf("%T %s", o, o.GetName()))
			}
		}
		return strings.Join(left, ", "), nil
	})
}

// isGone waits until no Release has south, and the Cluster object is gone.
func (s *placed) isGone() {
	s.Helper()
	s.Eventually("the Releases in "+south, "", func() (string, error) {
		rels := &shipper.ReleaseList{}
		err := world.Management.List(s.Ctx, rels)
		var in []string
		for i := range rels.Items {
			if slices.Contains(stamp.Clusters(&rels.Items[i]), south) {
				in = append(in, rels.Items[i].Name)
			}
		}
		return strings.Join(in, " "), err
	})
	s.Eventually("the Cluster "+south, "gone", func() (string, error) {
		err := world.Management.Get(s.Ctx, client.ObjectKey{Name: south}, &shipper.Cluster{})
		if apierrors.IsNotFound(err) {
			return "gone", nil
		}
		return "there", err
	})
}
