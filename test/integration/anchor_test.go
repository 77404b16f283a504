// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestARestoredTargetAdoptsWhatItsManagementClusterInstalled(t *testing.T) {
	s := begin(t, west)
	was := s.runs("web-1", 2)
	before, anchor := s.settled(), s.anchor("web-1")
	s.vanish("web-1")
	it := s.asks("web-1", 2)
	s.installed("web-1")
	s.scaled("web-1")
	s.weighed("web-1")
	if diff := cmp.Diff(without(before, "web-1"), without(s.versions(), "web-1")); diff != "" {
		t.Errorf("more was written than the anchor: -before +after:\n%s", diff)
	}
	if it.UID == was.UID {
		t.Error("the target was not restored")
	}
	s.adopted("web-1", anchor, it)
	s.told("web-1", "ConfigMapAdopted", `Config map "web-1-anchor" in cluster "west" belonged to another `+
		`InstallationTarget of this name and is now this one's`)
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	s.leftNothing("web-1")
}

func TestCleansUpAfterATargetThatWasRestoredAndDeletedAtOnce(t *testing.T) {
	s := begin(t, west)
	s.runs("web-1", 1)
	s.vanish("web-1")
	var restored *shipper.InstallationTarget
	s.outOfReach(func() {
		restored = s.asks("web-1", 1)
		s.notInstalled("web-1", west, shipper.ClusterUnreachable)
		s.must(s.management.Delete(s.ctx, restored))
	})
	s.gone(restored)
	s.leftNothing("web-1")
}

// TestWhatBecomesOfAnAnchorThatWasRewritten has targets leave west whose anchors there were rewritten behind their back: half of
// them are deleted, the others leave that cluster alone.
func TestWhatBecomesOfAnAnchorThatWasRewritten(t *testing.T) {
	const key, uid = shipper.AnchorIdentityKey, shipper.AnchorTargetUIDKey
	main := begin(t)
	theirs := fmt.Sprintf(`is that of the management cluster "there", and this one is %q`, main.identity())
	const someones = `was written for another InstallationTarget of this name, and does not say by which management cluster`
	tests := map[string]struct {
		says map[string]string
		left string // why it stays; empty: it goes
	}{
		"given to another":          {map[string]string{key: "there"}, theirs},
		"adopted by another":        {map[string]string{key: "there", uid: "that"}, theirs},
		"of the original":           {map[string]string{key: ""}, ""},
		"without an identity":       {map[string]string{key: "", uid: "that"}, someones},
		"of the time before a loss": {map[string]string{uid: "that"}, ""},
	}
	type anchored struct {
		*fixture
		deleted, moved *shipper.InstallationTarget
		before         map[string]string
	}
	stories := map[string]*anchored{}
	for name := range tests {
		s := begin(t, west, east)
		install := func(name, override string) *shipper.InstallationTarget {
			return s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": override}, west)
		}
		stories[name] = &anchored{fixture: s, deleted: install("web-1", "one"), moved: install("web-2", "two")}
		s.installed("web-1")
		s.installed("web-2")
	}
	main.outOfReach(func() {
		for name, s := range stories {
			s.rewrite("web-1", tests[name].says)
			s.rewrite("web-2", tests[name].says)
			s.before = s.settled()
			s.must(s.management.Delete(s.ctx, s.deleted))
			s.change(s.moved, func(client.Object) { s.moved.Spec.Clusters = []string{east} })
		}
	})
	for name, s := range stories {
		s.gone(s.deleted)
		s.left("web-2", west)
		if tests[name].left == "" {
			if left := s.versions(); len(left) > 0 {
				t.Errorf("%s: something is left: %v", name, left)
			}
			continue
		}
		for _, it := range []string{"web-1", "web-2"} {
			s.told(it, "ConfigMapLeft", fmt.Sprintf(`Config map %q in cluster "west" %s; the objects there stay as they are`,
				shipper.AnchorName(it), tests[name].left))
		}
		s.unchanged(s.before)
	}
}

// left waits until a target knows nothing of a cluster any more.
func (s *fixture) left(name, cluster string) {
	s.Helper()
	s.soon(name+" still knows "+cluster, func() string {
		var it shipper.InstallationTarget
		s.must(s.management.Get(s.ctx, s.key(name), &it))
		for _, c := range it.Status.Clusters {
			if c.Name == cluster {
				return fmt.Sprintf("%+v", it.Status)
			}
		}
		return ""
	})
}

// TestAnAnchorThatIsDeletedTakesNothingWithIt deletes the anchor as kubectl does by default, also after a user has emptied its list.
func TestAnAnchorThatIsDeletedTakesNothingWithIt(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	it := s.runs("web-1", 2)
	before, anchor := s.uids(), s.anchor("web-1")
	if !controllerutil.ContainsFinalizer(anchor, shipper.AnchorFinalizer) {
		t.Fatalf("nothing holds the anchor: %+v", anchor.ObjectMeta)
	}
	s.replacesAnchor(anchor)
	s.told("web-1", "ConfigMapReplaced", `Config map "web-1-anchor" was deleted in cluster "west", not by Shipper`)
	s.installed("web-1")
	s.settled()
	if diff := cmp.Diff(before, s.uids()); diff != "" {
		t.Errorf("objects came or went: -before +after:\n%s", diff)
	}
	s.replacesAnchor(s.rewrite("web-1", emptied))
	s.installed("web-1")
	s.settled()
	if diff := cmp.Diff(before, s.uids()); diff != "" {
		t.Errorf("objects came or went with an empty list: -before +after:\n%s", diff)
	}
	s.replacesAnchor(s.withoutLabels("web-1")) // no event reports the deletion
	s.installed("web-1")
	s.withoutLabels("web-1")
	s.soon("the anchor does not get its labels back", func() string {
		if s.anchor("web-1").Labels[shipper.AppLabel] != s.app {
			return fmt.Sprint(s.anchor("web-1").Labels)
		}
		return ""
	})
	s.rewrite("web-1", emptied)
	var d appsv1.Deployment
	s.find(west, "web-1-"+s.app, &d)
	s.must(world.clusters[west].Delete(s.ctx, &d))
	s.soon("the Deployment is not made again", func() string {
		var now appsv1.Deployment
		if s.find(west, d.Name, &now) && now.UID != d.UID && now.Status.ReadyReplicas == 2 {
			return ""
		}
		return fmt.Sprintf("%+v", now.Status)
	})
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	s.leftNothing("web-1")
}

// withoutLabels takes the labels off an anchor, as a user may.
func (s *fixture) withoutLabels(name string) *corev1.ConfigMap {
	s.Helper()
	anchor := s.anchor(name)
	s.must(world.clusters[west].Patch(s.ctx, anchor, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))))
	return anchor
}

// emptied is what a user writes into an anchor.
var emptied = map[string]string{"Inventory": "[]"}

// replacesAnchor deletes an anchor of web-1 and waits until another one lists and owns its objects.
func (s *fixture) replacesAnchor(anchor *corev1.ConfigMap) {
	s.Helper()
	s.must(world.clusters[west].Delete(s.ctx, anchor, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	s.soon("the anchor is not made again", func() string {
		cm := &corev1.ConfigMap{}
		if s.find(west, anchor.Name, cm) && cm.UID != anchor.UID && cm.Data["RenderedFrom"] != "" && cm.Data["Inventory"] != "[]" {
			return ""
		}
		return fmt.Sprintf("%+v", cm)
	})
	s.soon("its objects have another owner", func() string {
		var d appsv1.Deployment
		if !s.find(west, "web-1-"+s.app, &d) || len(d.OwnerReferences) != 1 {
			return fmt.Sprintf("%+v", d.ObjectMeta)
		}
		return cmp.Diff(s.anchor("web-1").UID, d.OwnerReferences[0].UID)
	})
}

// uids are those of the Application's Deployments, Pods and Services in west.
func (s *fixture) uids() map[string]types.UID {
	s.Helper()
	out := map[string]types.UID{}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.PodList{}, &corev1.ServiceList{}} {
		of := client.MatchingLabels{shipper.AppLabel: s.app}
		s.must(world.clusters[west].List(s.ctx, list, client.InNamespace(s.namespace), of))
		s.must(meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			out[fmt.Sprintf("%T %s", o, object.GetName())] = object.GetUID()
			return err
		}))
	}
	return out
}

func TestHearsOfAnAnchorThatChangesHands(t *testing.T) {
	s := begin(t, west)
	s.runs("web-1", 1)
	s.rewrite("web-1", map[string]string{shipper.AnchorIdentityKey: "there"})
	s.refused("web-1", "there", "web-1")
	s.scale("web-1", 100, 3, west)
	s.soon("the new capacity is not looked at", func() string {
		var ct shipper.CapacityTarget
		s.must(s.management.Get(s.ctx, s.key("web-1"), &ct))
		if ct.Status.ObservedGeneration != ct.Generation {
			return fmt.Sprintf("%+v", ct.Status)
		}
		return ""
	})
	var d appsv1.Deployment
	if !s.find(west, "web-1-web", &d) || *d.Spec.Replicas != 1 {
		t.Errorf("what is another's was scaled: %+v", d.Spec)
	}
	s.rewrite("web-1", map[string]string{shipper.AnchorIdentityKey: s.identity()})
	s.installed("web-1")
	s.scaled("web-1")
	s.weighed("web-1")
}

func TestAnAnchorOfAnEarlierVersionIsClaimedOnce(t *testing.T) {
	s := begin(t, west)
	s.runs("web-1", 1)
	before := s.settled()
	s.outOfReach(func() { s.rewrite("web-1", map[string]string{shipper.AnchorIdentityKey: "", "InventoryDigest": ""}) })
	s.soon("it is not claimed", func() string { return cmp.Diff(s.identity(), s.anchor("web-1").Data[shipper.AnchorIdentityKey]) })
	s.installed("web-1")
	if diff := cmp.Diff(without(before, "web-1"), without(s.versions(), "web-1")); diff != "" {
		t.Errorf("more was written than the anchor: -before +after:\n%s", diff)
	}
	before = s.versions()
	s.takeOver("web-1", false) // a change that makes it look again
	s.installed("web-1")
	s.unchanged(before)
}

func TestAnObjectThatAForeignAnchorOwnsIsNotTakenOver(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	// The anchor does not carry the label of the Application: only its objects do.
	anchor := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-0-anchor"},
		Data:       map[string]string{shipper.AnchorTargetUIDKey: "that", shipper.AnchorIdentityKey: "there"},
	}
	s.must(world.clusters[west].Create(s.ctx, anchor))
	theirs := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "test-nginx-prod",
			Labels: map[string]string{shipper.AppLabel: "web", shipper.OwnedByLabel: "web-0"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: anchor.Name, UID: anchor.UID},
			},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}},
	}
	s.must(world.clusters[west].Create(s.ctx, theirs))
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	message := s.notInstalled("web-1", west, shipper.ObjectConflict)
	const want = `Service "test-nginx-prod" cannot be installed: it belongs to the management cluster "there", says ` +
		`ConfigMap "web-0-anchor"`
	if message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	var now corev1.Service
	if s.find(west, theirs.Name, &now); now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was written: %+v", now)
	}
	s.must(world.clusters[west].Delete(s.ctx, anchor))
	s.installed("web-1")
}

func TestAnObjectWithoutANamespaceBelongsToOneApplication(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	values := shipper.ChartValues{"nameOverride": s.namespace}
	it := s.install("web-1", "cluster-scoped", "0.0.1", values, west)
	s.installed("web-1")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-reader"}}
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))

	elsewhere := *s // the same Application in another namespace
	elsewhere.namespace += "-too"
	elsewhere.makeNamespace(s.management)
	elsewhere.makeNamespace(world.clusters[west])
	elsewhere.install("web-2", "cluster-scoped", "0.0.1", values, west)
	message := elsewhere.notInstalled("web-2", west, shipper.ObjectConflict)
	want := fmt.Sprintf(`ClusterRole %q cannot be installed: it belongs to the Application "web" in namespace %q`,
		role.Name, s.namespace)
	if message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	version := role.ResourceVersion
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))
	if role.ResourceVersion != version {
		t.Errorf("it was written: %+v", role)
	}
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	elsewhere.installed("web-2")
}
