// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
)

var hidden = []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}}

// holding are values whose message is a text.
func holding(text string) []byte { return []byte("message: k33p-" + text) }

// digest is that of what a Secret of the Application held.
func (s *fixture) digest(text string) map[string]string {
	s.Helper()
	digests, err := values.Pinned{Namespace: s.namespace, App: s.app, From: hidden}.DigestsOf(values.Held{hidden[0].String(): holding(text)})
	s.must(err)
	return digests
}

// pinnedTo makes a Release that was admitted when its Secret held a text.
func (s *fixture) pinnedTo(generation int, text string) *shipper.Release {
	s.Helper()
	rel := &shipper.Release{ObjectMeta: s.meta(fmt.Sprintf("web-%d", generation)), Spec: shipper.ReleaseSpec{
		Environment: shipper.ReleaseEnvironment{
			Chart:               shipper.Chart{Name: "configmap", Version: "0.0.1", RepoURL: world.charts.URL},
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
			Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
			ValuesFrom:          hidden, ValuesDigests: s.digest(text),
		},
	}}
	rel.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: strconv.Itoa(generation)}
	s.must(s.management.Create(s.ctx, rel))
	return rel
}

// keeps waits until the Secret of a Release holds a text.
func (s *fixture) keeps(rel *shipper.Release, text string) {
	s.Helper()
	s.soon("the values of "+rel.Name+" are not kept", func() string {
		var secret corev1.Secret
		if err := s.management.Get(s.ctx, s.key(shipper.ValuesSecretName(rel.Name)), &secret); err != nil {
			return err.Error()
		}
		if got := string(secret.Data["0"]); got != string(holding(text)) || secret.OwnerReferences[0].UID != rel.UID || !*secret.Immutable {
			return fmt.Sprintf("%s, of %v", got, secret.OwnerReferences)
		}
		return ""
	})
}

// TestWhatIsKeptIsWhatWasAdmitted keeps what a Secret held for several Releases, of which one was admitted with something else.
func TestWhatIsKeptIsWhatWasAdmitted(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }
	source := &corev1.Secret{ObjectMeta: named("hidden"), Data: map[string][]byte{"values.yaml": holding("one")}}
	s.must(s.management.Create(s.ctx, source))
	holds := func(text string) {
		s.change(source, func(client.Object) { source.Data = map[string][]byte{"values.yaml": holding(text)} })
	}
	one := s.pinnedTo(1, "one")
	s.keeps(one, "one")
	holds("two")
	back := s.pinnedTo(2, "one")
	s.keeps(back, "one")

	three := s.pinnedTo(3, "three")
	s.soon("it is not reported that it is not kept", func() string {
		var all eventsv1.EventList
		s.must(s.management.List(s.ctx, &all, client.InNamespace(s.namespace)))
		text, err := json.Marshal(all)
		s.must(err)
		if strings.Contains(string(text), "k33p") {
			t.Errorf("a secret value was reported: %s", text)
		}
		for _, word := range []string{"ValuesNotKept", "does not hold what it held when this was admitted"} {
			if !strings.Contains(string(text), word) {
				return string(text)
			}
		}
		return ""
	})
	holds("three")
	s.keeps(three, "three")

	it := &shipper.InstallationTarget{ObjectMeta: s.meta(one.Name), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true, Chart: &one.Spec.Environment.Chart, ValuesFrom: hidden, ValuesDigests: s.digest("one"),
	}}
	s.must(s.management.Create(s.ctx, it))
	s.installed(one.Name)
	says := func(want string) {
		t.Helper()
		var cm corev1.ConfigMap
		if s.find(west, "configmap-settings", &cm); cm.Data["message"] != want {
			t.Errorf("it renders to %q, want %q", cm.Data["message"], want)
		}
	}
	says("k33p-one")
	lose := func(rel *shipper.Release) {
		s.must(s.management.Delete(s.ctx, &corev1.Secret{ObjectMeta: named(shipper.ValuesSecretName(rel.Name))}))
	}
	again := func(replicas int64) {
		s.change(it, func(client.Object) { it.Spec.Values = &shipper.ChartValues{"replicaCount": replicas} })
	}
	lose(one)
	again(2)
	s.installed(one.Name)
	s.keeps(one, "one") // as the other Release has it

	lose(one)
	lose(back)
	s.must(s.management.Create(s.ctx, &corev1.Secret{
		ObjectMeta: named(shipper.ValuesSecretName(one.Name)), Data: map[string][]byte{"0": holding("forged")},
	}))
	again(3) // which is not read while all is there: the installation stays
	says("k33p-one")
	s.must(world.clusters[west].Delete(s.ctx, &corev1.ConfigMap{ObjectMeta: named("configmap-settings")}))
	message := s.notInstalled(one.Name, west, shipper.ValuesFetchFailure)
	want := "Secret " + s.namespace + "/hidden does not hold what it held when this was admitted, and no Release keeps that; put it " +
		"back, or take what it holds now: kubectl annotate app " + s.app + " shipper.booking.com/app.values.refresh=<anything new> " +
		"--overwrite -n " + s.namespace
	if message != want {
		t.Errorf("it says %q, want %q", message, want)
	}
	holds("one")
	lose(one)
	s.keeps(one, "one")
	s.installed(one.Name)
	says("k33p-one")
}
