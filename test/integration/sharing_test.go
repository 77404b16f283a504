// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// unchanged fails when anything of the Application in west is no longer as it was.
func (s *fixture) unchanged(before map[string]string) {
	s.Helper()
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		s.Errorf("something was written: -before +after:\n%s", diff)
	}
}

// refused waits until all three targets of a Release say that west's is the Application of a management cluster, by an
// anchor of that.
func (s *fixture) refused(name, theirs, anchor string) {
	s.Helper()
	want := fmt.Sprintf(`the Application %q in namespace %q of this cluster is that of the management cluster %q, says `+
		`ConfigMap %q, and this one is %q; use another name or namespace, or, if this management cluster replaces that one, `+
		`give it its id: kubectl -n shipper-system patch configmap shipper-identity --type=merge -p '{"data":{"id":%q}}'`,
		s.app, s.namespace, theirs, shipper.AnchorName(anchor), s.identity(), theirs)
	got := map[string]string{
		"installation": s.notInstalled(name, west, shipper.ObjectConflict),
		"capacity":     s.notScaled(name, west, shipper.ObjectConflict),
		"traffic":      s.notWeighed(name, west, shipper.ObjectConflict),
	}
	if diff := cmp.Diff(map[string]string{"installation": want, "capacity": want, "traffic": want}, got); diff != "" {
		s.Errorf("what %s says: -want +got:\n%s", name, diff)
	}
}

func TestASecondManagementClusterTouchesNothingOfTheFirsts(t *testing.T) {
	s := begin(t, west)
	s.runs("web-1", 2)
	other := s.another()
	before := s.settled()
	same, later := other.asks("web-1", 5), other.asks("web-2", 5)
	for _, it := range []*shipper.InstallationTarget{same, later} {
		other.refused(it.Name, s.identity(), "web-1")
	}
	s.unchanged(before)

	s.scale("web-1", 100, 3, west) // the first goes on
	s.scaled("web-1")
	s.weighed("web-1")
	before = s.settled()
	for _, it := range []*shipper.InstallationTarget{same, later} {
		s.must(other.management.Delete(s.ctx, it))
		other.gone(it)
	}
	other.told("web-1", "ConfigMapLeft", fmt.Sprintf(`Config map "web-1-anchor" in cluster "west" is that of the management `+
		`cluster %q, and this one is %q; the objects there stay as they are`, s.identity(), other.identity()))
	s.unchanged(before)
	s.installed("web-1")
}

func TestTwoManagementClustersWorkSideBySide(t *testing.T) {
	s := begin(t, west)
	other := s.another()
	other.app = "shop"
	s.runs("web-1", 2)
	before := s.settled()
	it := other.runs("shop-1", 3)
	if s.identity() == other.identity() {
		t.Error("they have the same identity")
	}
	s.must(other.management.Delete(s.ctx, it))
	other.gone(it)
	other.leftNothing("shop-1")
	s.unchanged(before)
}

func TestASecondManagementClusterGoesOnWhenTheFirstIsGone(t *testing.T) {
	s := begin(t, west)
	it := s.runs("web-1", 2)
	other := s.another()
	other.asks("web-1", 1)
	other.refused("web-1", s.identity(), "web-1")
	for _, o := range []client.Object{
		&shipper.CapacityTarget{ObjectMeta: s.meta("web-1")}, &shipper.TrafficTarget{ObjectMeta: s.meta("web-1")}, it,
	} {
		s.must(s.management.Delete(s.ctx, o))
	}
	s.gone(it)
	other.installed("web-1")
	other.scaled("web-1")
	other.weighed("web-1")
	if got := s.anchor("web-1").Data[shipper.AnchorIdentityKey]; got != other.identity() {
		t.Errorf("the anchor says %q", got)
	}
}

func TestAManagementClusterThatReplacesAnotherTakesItsIdentity(t *testing.T) {
	s := begin(t, west)
	s.runs("web-1", 2)
	lost := s.identity()
	other := s.another()
	s.vanish("web-1")
	before, anchor := s.settled(), s.anchor("web-1")
	it := other.asks("web-1", 2)
	other.refused("web-1", lost, "web-1")
	other.become(lost)
	other.installed("web-1")
	other.scaled("web-1")
	other.weighed("web-1")
	if diff := cmp.Diff(without(before, "web-1"), without(s.versions(), "web-1")); diff != "" {
		t.Errorf("more was written than the anchor: -before +after:\n%s", diff)
	}
	s.adopted("web-1", anchor, it)
	s.must(other.management.Delete(s.ctx, it))
	other.gone(it)
	s.leftNothing("web-1")
}

// adopted fails unless the anchor of a Release is as it was, but for the target's UID, and for the kinds that west may have
// learnt since.
func (s *fixture) adopted(name string, before *corev1.ConfigMap, it *shipper.InstallationTarget) {
	s.Helper()
	const rendered = "RenderedFrom"
	now := s.anchor(name)
	before.Data[shipper.AnchorTargetUIDKey], before.Data[rendered] = string(it.UID), now.Data[rendered]
	if diff := cmp.Diff(before.Data, now.Data); diff != "" || now.UID != before.UID {
		s.Errorf("the anchor is another: -want +got:\n%s", diff)
	}
}

// leftNothing fails when anything of a Release that its target installed is still in west.
func (s *fixture) leftNothing(name string) {
	s.Helper()
	if s.find(west, name+"-"+s.app, &appsv1.Deployment{}) || s.find(west, shipper.AnchorName(name), &corev1.ConfigMap{}) ||
		s.find(west, s.app+"-prod", &corev1.Service{}) {
		s.Errorf("something of %s is left", name)
	}
}

func TestAnIdentityThatIsDeletedComesBack(t *testing.T) {
	s := begin(t, west)
	id := s.identity()
	s.runs("web-1", 1)
	before := s.settled()
	cm := identityOf("")
	s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(cm), cm))
	s.must(s.management.Delete(s.ctx, cm, client.Preconditions{UID: &cm.UID}))
	if now := s.identity(); now != id {
		t.Errorf("it was %q and is %q", id, now)
	}
	s.unchanged(before)
}

func TestAnIdentityThatIsNoneStopsEverything(t *testing.T) {
	s := begin(t, west)
	id := s.identity()
	defer s.become(id)
	s.runs("web-1", 1)
	s.become("")
	message := s.notInstalled("web-1", west, shipper.TargetClusterClientError)
	const want = `data.id of ConfigMap shipper-system/shipper-identity is no id: it is "" and must be a DNS subdomain; write ` +
		`the id of this management cluster there, which its anchors say`
	if message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	s.become(id)
	s.installed("web-1")
	s.scaled("web-1")
	s.weighed("web-1")
}
