// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// watched are objects that others may have an interest in.
const watched = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, size: large}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: old}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 1
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: "store:1", resources: {limits: {cpu: 1000m}}}]}
`

// policy makes an Application of the story's, or gives it another driftPolicy.
func (s *fixture) policy(policy shipper.DriftPolicy) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.app}}
	edit := func(client.Object) {
		app.Spec.DriftPolicy = policy
		app.Spec.Template = shipper.ReleaseEnvironment{
			Chart:               shipper.Chart{Name: "x", Version: "0.0.1", RepoURL: world.charts.URL},
			ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "x"}}},
			Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
		}
	}
	edit(app)
	s.put(app, edit)
}

// drifts waits until a target says of drift in a cluster what is expected.
func (s *fixture) drifts(name, cluster string, expected ...string) {
	s.Helper()
	s.soon("what is said of drift in "+cluster, func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.management.Get(s.ctx, s.key(name), it))
		var got []string
		for _, c := range it.Status.Clusters {
			if c.Name != cluster || c.Drift == nil {
				continue
			}
			for _, f := range c.Drift.Fields {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s: %s -> %s", f.Name, f.Field, f.Want, f.Have)))
			}
			if c.Drift.Message != "" || c.Drift.Omitted > 0 {
				got = append(got, fmt.Sprintf("%d more, %s", c.Drift.Omitted, c.Drift.Message))
			}
		}
		if a, b := strings.Join(got, "\n"), strings.Join(expected, "\n"); a != b {
			return "got:\n" + a + "\nwant:\n" + b
		}
		return ""
	})
}

// tamper changes in a cluster what is ours, and what is not. It scales as people and autoscalers do.
func (s *fixture) tamper(cluster string) {
	s.Helper()
	store := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "store"}}
	s.must(world.clusters[cluster].SubResource("scale").Update(s.ctx, store, client.WithSubResourceBody(&autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "store"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
	})))
	s.meddle(cluster, store, func() { store.Spec.Template.Spec.Containers[0].Image = "store:2" })
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings"}}
	s.meddle(cluster, settings, func() {
		settings.Labels["their"], settings.Data["more"], settings.Data["color"] = "own", "theirs", "red"
		delete(settings.Data, "size")
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "secret"}}
	s.meddle(cluster, secret, func() { secret.Data["password"] = []byte("new") })
}

func TestDriftIsIgnoredReportedAndCorrected(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.policy("")
	s.publish("watched", map[string]string{"templates/watched.yaml": watched})
	s.install("web-1", "watched", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	s.objects("web-1", west, "5/5")
	said := []string{
		"secret data.password:  ->", `settings data.color: "blue" -> "red"`, `settings data.size: "large" ->`,
		`store spec.template.spec.containers[name=store].image: "store:1" -> "store:2"`,
	}
	s.drifts("web-1", west)
	s.tamper(west)
	s.drifts("web-1", west, said...) // also where no policy is named
	s.policy(shipper.DriftReport)
	s.drifts("web-1", west, said...)
	s.drifts("web-1", east)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	s.meddle(east, service, func() { service.Spec.Ports[0].Port = 81 })
	s.drifts("web-1", east, `web spec.ports[0].port: 80 -> 81`)
	s.meddle(east, service, func() { service.Spec.Ports[0].Port = 80 })
	s.drifts("web-1", east)

	s.policy(shipper.DriftIgnore)
	s.drifts("web-1", west)
	s.policy(shipper.DriftCorrect)
	s.soon("it is not corrected", func() string {
		var settings corev1.ConfigMap
		var secret corev1.Secret
		var store appsv1.StatefulSet
		s.find(west, "settings", &settings)
		s.find(west, "secret", &secret)
		s.find(west, "store", &store)
		got := fmt.Sprint(settings.Data, settings.Labels["their"], " ", string(secret.Data["password"]), " ",
			store.Spec.Template.Spec.Containers[0].Image, " ", *store.Spec.Replicas)
		if want := "map[color:blue more:theirs size:large]own old store:1 5"; got != want {
			return got + ", want " + want
		}
		return ""
	})
	s.drifts("web-1", west)
	for _, name := range []string{"settings", "secret", "store"} {
		s.toldOfCorrecting(name)
	}
}

// TestWhatIsTakenAwayIsDrift takes metadata away, of which a kind keeps no generation.
func TestWhatIsTakenAwayIsDrift(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.policy(shipper.DriftReport)
	s.publish("labelled", map[string]string{"templates/labelled.yaml": strings.ReplaceAll(watched,
		"{name: store}\n", "{name: store, labels: {team: blue}, annotations: {note: here}}\n")})
	s.install("web-1", "labelled", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.objects("web-1", west, "5/5")
	s.drifts("web-1", west)
	store := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "store"}}
	s.meddle(west, store, func() { delete(store.Annotations, "note") })
	s.drifts("web-1", west, `store metadata.annotations.note: "here" ->`)
	s.meddle(west, store, func() { delete(store.Labels, "team") })
	s.drifts("web-1", west, `store metadata.annotations.note: "here" ->`, `store metadata.labels.team: "blue" ->`)
}

// toldOfCorrecting waits for the event about a correction.
func (s *fixture) toldOfCorrecting(object string) {
	s.Helper()
	s.soon("no event is about "+object, func() string {
		var all eventsv1.EventList
		s.must(s.management.List(s.ctx, &all, client.InNamespace(s.namespace)))
		var notes []string
		for i := range all.Items {
			if e := &all.Items[i]; e.Reason == "DriftCorrected" {
				if strings.Contains(e.Note, `"`+object+`"`) {
					return ""
				}
				notes = append(notes, e.Note)
			}
		}
		return strings.Join(notes, "\n")
	})
}
