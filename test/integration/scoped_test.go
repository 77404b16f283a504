// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// installScoped makes a target of a chart with a ClusterRole of that name, ready in west, which is known to have it.
func (s *fixture) installScoped(name, role string) (*shipper.InstallationTarget, *rbacv1.ClusterRole) {
	s.Helper()
	s.install(name, "cluster-scoped", "0.0.1", shipper.ChartValues{"nameOverride": role}, west)
	it := s.installed(name)
	object := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role + "-reader"}}
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(object), object))
	return it, object
}

// loseNamespace deletes the story's namespace in west, and waits until it is gone.
func (s *fixture) loseNamespace() {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(world.clusters[west].Delete(s.ctx, namespace))
	s.soon("the namespace does not go", func() string {
		err := world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, %+v", err, namespace.Status)
	})
}

// stays reports whether an object in west is there, and is that very one.
func (s *fixture) stays(role *rbacv1.ClusterRole) bool {
	s.Helper()
	var now rbacv1.ClusterRole
	err := world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), &now)
	s.must(client.IgnoreNotFound(err))
	return err == nil && now.UID == role.UID && now.DeletionTimestamp == nil
}

func TestCleansUpWhatHasNoNamespaceWhereTheNamespaceIsGone(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	it, role := s.installScoped("web-1", s.namespace)
	s.loseNamespace()
	s.notInstalled("web-1", west, shipper.NamespaceMissing)
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if s.stays(role) {
		t.Error("the ClusterRole is left behind")
	}
}

// TestCleansUpWhatHasNoNamespaceThoughTheStatusIsLost has a target restored that was made again, without a status, where its namespace in
// the cluster is gone: the list in shipper-system there is all that is left to say what it has.
func TestCleansUpWhatHasNoNamespaceThoughTheStatusIsLost(t *testing.T) {
	s := begin(t, west)
	_, role := s.installScoped("web-1", s.namespace)
	if got := s.lists(); got != 1 {
		t.Fatalf("there are %d lists in the cluster, want 1", got)
	}
	s.vanish("web-1")
	s.loseNamespace()
	restored := s.install("web-1", "cluster-scoped", "0.0.1", shipper.ChartValues{"nameOverride": s.namespace}, west)
	s.notInstalled("web-1", west, shipper.NamespaceMissing)
	s.must(s.management.Delete(s.ctx, restored))
	s.gone(restored)
	if s.stays(role) {
		t.Error("the ClusterRole is left behind")
	}
	if got := s.lists(); got != 0 {
		t.Errorf("%d lists are left behind", got)
	}
}

// lists is how many lists of objects without a namespace the story has in west.
func (s *fixture) lists() (n int) {
	s.Helper()
	var all corev1.ConfigMapList
	s.must(world.clusters[west].List(s.ctx, &all, client.InNamespace(shipper.SystemNamespace)))
	for _, cm := range all.Items {
		if cm.Annotations[shipper.PlacedOwnerAnnotation] == s.namespace+"/"+s.app {
			n++
		}
	}
	return n
}

func TestCleansUpWhatHasNoNamespaceWhereTheAnchorIsGoing(t *testing.T) {
	s := begin(t, west)
	it, role := s.installScoped("web-1", s.namespace)
	s.outOfReach(func() {
		s.must(world.clusters[west].Delete(s.ctx, s.anchor("web-1")))
		s.must(s.management.Delete(s.ctx, it))
	})
	s.gone(it)
	if s.stays(role) {
		t.Error("the ClusterRole is left behind")
	}
}

func TestLeavesWhatIsAnothersWhereTheNamespaceIsGone(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	first, replaced := s.installScoped("web-1", s.namespace+"-1")
	second, shared := s.installScoped("web-2", s.namespace+"-2")
	s.loseNamespace()
	s.must(world.clusters[west].Delete(s.ctx, replaced.DeepCopy()))
	replaced.UID, replaced.ResourceVersion = "", ""
	s.must(world.clusters[west].Create(s.ctx, replaced))
	other := begin(t, west) // an Application of that name in another namespace
	heir, _ := other.installScoped("web-2", s.namespace+"-2")

	for _, it := range []*shipper.InstallationTarget{first, second} {
		s.must(s.management.Delete(s.ctx, it))
		s.gone(it)
	}
	if !s.stays(replaced) {
		t.Error("a foreign ClusterRole with the old one's name was deleted")
	}
	if !s.stays(shared) {
		t.Error("a ClusterRole that an Application of another namespace lists was deleted")
	}
	other.must(s.management.Delete(s.ctx, heir))
	other.gone(heir)
	if s.stays(shared) {
		t.Error("the ClusterRole is left behind by the last one that lists it")
	}
	s.must(world.clusters[west].Delete(s.ctx, replaced))
}
