// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// snapshots are the contents that tests place: no reconciler of selections runs.
var snapshots = &contents{all: map[string][]unstructured.Unstructured{}}

type contents struct {
	sync.Mutex
	all map[string][]unstructured.Unstructured
}

// Content is resources.Content.
func (c *contents) Content(_ context.Context, namespace, digest string) ([]unstructured.Unstructured, error) {
	c.Lock()
	defer c.Unlock()
	content, found := c.all[namespace+digest]
	if !found {
		return nil, fmt.Errorf("there is no snapshot %s", digest)
	}
	return content, nil
}

// snapshot keeps objects, as YAML, in which NS stands for the story's namespace, and returns their digest.
func (s *fixture) snapshot(letter, text string) string {
	s.Helper()
	var all []unstructured.Unstructured
	for doc := range strings.SplitSeq(strings.ReplaceAll(text, "NS", s.namespace), "---\n") {
		u := unstructured.Unstructured{}
		s.must(yaml.Unmarshal([]byte(doc), &u.Object))
		all = append(all, u)
	}
	digest := strings.Repeat(letter, 64)
	snapshots.Lock()
	defer snapshots.Unlock()
	snapshots.all[s.namespace+digest] = all
	return digest
}

// place makes a target that places the content of a digest.
func (s *fixture) place(name string, what shipper.TargetResources, clusters ...string) *shipper.InstallationTarget {
	s.Helper()
	it := &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
		Clusters: clusters, CanOverride: true, Resources: &what,
	}}
	s.must(s.management.Create(s.ctx, it))
	return it
}

// ready waits until a target has a reason of Ready in a cluster, and returns what it says of the cluster.
func (s *fixture) ready(name, cluster string, status corev1.ConditionStatus, reason string) (out shipper.ClusterInstallationStatus) {
	s.Helper()
	s.soon(fmt.Sprintf("%s is not %s for %q in %s", name, status, reason, cluster), func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.management.Get(s.ctx, s.key(name), it))
		for _, out = range it.Status.Clusters {
			c := shipper.FindCondition(out.Conditions, shipper.TargetReady)
			if out.Name == cluster && c != nil && c.Status == status && c.Reason == reason && it.Status.ObservedGeneration == it.Generation {
				return ""
			}
		}
		return fmt.Sprintf("%+v", it.Status)
	})
	return out
}

// config reads the data of a ConfigMap in a cluster; nil when it is not there.
func (s *fixture) config(cluster, namespace, name string) map[string]string {
	s.Helper()
	var cm corev1.ConfigMap
	err := world.clusters[cluster].Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return cm.Data
}

const placedOne = `
{apiVersion: v1, kind: Namespace, metadata: {name: NS-more}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS-more, name: a}, data: {k: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: b}, data: {k: "1"}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}}
`

// TestResourcesArePlacedFollowedAndRemoved has objects in two namespaces and one in none.
func TestResourcesArePlacedFollowedAndRemoved(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	more := s.namespace + "-more"
	s.policy(shipper.DriftHalt)
	all := shipper.TargetResources{Snapshot: s.snapshot("1", placedOne), Removal: shipper.RemovalAll}
	s.place("web-1", all, west, east)
	s.installed("web-1")
	for _, c := range []string{west, east} {
		s.objects("web-1", c, "4/4")
	}

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: more, Name: "a"}}
	s.meddle(west, cm, func() { cm.Data["k"] = "edited" })
	got := s.ready("web-1", west, corev1.ConditionTrue, shipper.DriftFound)
	want := &shipper.InstalledDrift{Objects: 1, Fields: []shipper.DriftedField{{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: more, Name: "a", Field: "data.k", Want: `"1"`, Have: `"edited"`,
		Manager: "integration.test",
	}}}
	if diff := cmp.Diff(want, s.withoutTimes(got.Drift)); diff != "" {
		t.Errorf("drift: -want +got:\n%s", diff)
	}
	s.must(world.clusters[east].Delete(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: more, Name: "a"}}))
	s.soon("what was deleted does not come back", func() string {
		if s.config(east, more, "a")["k"] == "1" {
			return ""
		}
		return "it is not there"
	})
	if k := s.config(west, more, "a")["k"]; k != "edited" {
		t.Errorf("what was edited has k=%s", k)
	}

	next := all
	two := strings.ReplaceAll(placedOne, `"1"`, `"2"`)
	next.Snapshot = s.snapshot("2", strings.Replace(two, "name: b", "name: c", 1))
	s.place("web-2", next, west, east)
	s.ready("web-1", west, corev1.ConditionTrue, shipper.SupersededByNewer)
	s.installed("web-2")
	for _, c := range []string{west, east} {
		state := []string{s.config(c, more, "a")["k"], s.config(c, s.namespace, "c")["k"], fmt.Sprint(s.config(c, s.namespace, "b"))}
		if diff := cmp.Diff([]string{"2", "2", "map[]"}, state); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c, diff)
		}
	}

	s.must(s.management.Delete(s.ctx, &shipper.InstallationTarget{ObjectMeta: s.meta("web-1")}))
	s.gone(&shipper.InstallationTarget{ObjectMeta: s.meta("web-1")})
	if k := s.config(west, more, "a")["k"]; k != "2" {
		t.Errorf("the older target has taken objects along: k=%s", k)
	}
	s.must(s.management.Delete(s.ctx, &shipper.InstallationTarget{ObjectMeta: s.meta("web-2")}))
	s.gone(&shipper.InstallationTarget{ObjectMeta: s.meta("web-2")})
	for _, c := range []string{west, east} {
		anchor := client.ObjectKey{Namespace: shipper.SystemNamespace, Name: shipper.PlacedAnchorName(s.namespace, s.app)}
		for _, left := range []error{
			world.clusters[c].Get(s.ctx, client.ObjectKey{Name: s.namespace}, &rbacv1.ClusterRole{}),
			world.clusters[c].Get(s.ctx, client.ObjectKey{Name: more}, &corev1.Namespace{}),
			world.clusters[c].Get(s.ctx, anchor, &corev1.ConfigMap{}),
		} {
			if !apierrors.IsNotFound(left) {
				t.Errorf("something is left in %s: %v", c, left)
			}
		}
	}
}

// withoutTimes is a drift without the times at which the managers that it names wrote. They must be there.
func (s *fixture) withoutTimes(d *shipper.InstalledDrift) *shipper.InstalledDrift {
	s.Helper()
	if d == nil {
		return nil
	}
	d = d.DeepCopy()
	for i := range d.Fields {
		f := &d.Fields[i]
		if (f.Manager == "") != (f.Since == nil) || f.Since != nil && time.Since(f.Since.Time) > time.Hour {
			s.Errorf("%s of %s was written by %q at %v", f.Field, f.Name, f.Manager, f.Since)
		}
		f.Since = nil
	}
	return d
}

// TestAnObjectIsTakenOverOnceItDoesNotDiffer is scenario 25: no cache has what is not taken.
func TestAnObjectIsTakenOverOnceItDoesNotDiffer(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a", Labels: map[string]string{"tier": "x"}}}
	theirs.Data = map[string]string{"k": "1", "more": "theirs"}
	s.must(world.clusters[west].Create(s.ctx, theirs))
	s.place("web-1", shipper.TargetResources{
		Apply: &shipper.Apply{TakeOver: shipper.TakeOverIfNoDiff}, Snapshot: s.snapshot("1", `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: a, labels: {tier: gold}}, data: {k: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: b}}
`),
	}, west)
	got := s.ready("web-1", west, corev1.ConditionFalse, shipper.NotTakenOver)
	want := &shipper.InstalledDrift{Objects: 1, Fields: []shipper.DriftedField{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "a", Field: "metadata.labels.tier", Want: `"gold"`, Have: `"x"`, Manager: "integration.test",
	}}}
	if diff := cmp.Diff(want, s.withoutTimes(got.Diff)); diff != "" {
		t.Errorf("diff: -want +got:\n%s", diff)
	}
	if !s.find(west, "b", &corev1.ConfigMap{}) {
		t.Error("the other object is not placed")
	}
	s.meddle(west, theirs, func() { theirs.Labels["tier"] = "gold" })
	mended := time.Now()
	s.installed("web-1")
	if took := time.Since(mended); took > 10*time.Second { // 5 s where the machine is not busy
		t.Errorf("it was taken after %s", took)
	}
	if data := s.config(west, s.namespace, "a"); data["more"] != "theirs" {
		t.Errorf("fields that the manifest lacks were not kept: %v", data)
	}
}

// TestReportDiffWritesNothingInACluster compares with objects that are there, and with one that is not.
func TestReportDiffWritesNothingInACluster(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}, Data: map[string]string{"k": "0"}}
	s.must(world.clusters[west].Create(s.ctx, theirs))
	s.place("web-1", shipper.TargetResources{
		Apply: &shipper.Apply{Type: shipper.ApplyReportDiff, TakeOver: shipper.TakeOverAlways}, Snapshot: s.snapshot("1", `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: a}, data: {k: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: b}}
`),
	}, west)
	got := s.ready("web-1", west, corev1.ConditionTrue, shipper.DiffReported)
	var fields []string
	for _, f := range got.Diff.Fields {
		fields = append(fields, f.Name+" "+f.Field)
	}
	if diff := cmp.Diff([]string{"a data.k", "b ."}, fields); diff != "" {
		t.Errorf("fields: -want +got:\n%s", diff)
	}
	now := &corev1.ConfigMap{}
	if !s.find(west, "a", now) || now.ResourceVersion != theirs.ResourceVersion || s.find(west, "b", now) {
		t.Errorf("something was written: %+v", now)
	}
}
