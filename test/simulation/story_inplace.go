// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
)

// statefulChart are the files of a chart with a Deployment, a StatefulSet and a DaemonSet, none of which has the Release in its name. The
// images have its version, and so has ConfigMap settings, with a text that another rendering has not. Secret constant is always the same.
func statefulChart(version string) map[string]string {
	workload := func(kind, name, spec string) string {
		return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  %s
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      containers:
      - {name: it, image: "%s:%s", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: constant}}]}
`, kind, name, spec, name, name, name, version)
	}
	return map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: stateful\nversion: " + version + "\n",
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {is: \"" + version +
			" of revision {{ .Release.Revision }}\"}\n",
		"templates/constant.yaml":   "apiVersion: v1\nkind: Secret\nmetadata: {name: constant}\nstringData: {a: b}\n",
		"templates/web.yaml":        workload("Deployment", "web", "replicas: {{ .Values.replicaCount }}"),
		"templates/db.yaml":         workload("StatefulSet", "db", "replicas: {{ .Values.replicaCount }}\n  serviceName: db"),
		"templates/agent.yaml":      workload("DaemonSet", "agent", "minReadySeconds: 0"),
		"templates/service-db.yaml": service("db", "db", "clusterIP: None"),
		"templates/service.yaml":    service(serviceName, "web", "type: ClusterIP"),
	}
}

func service(name, app, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec:\n  %s\n  selector: {app: %s}\n  ports: [{port: 80}]\n",
		name, spec, app)
}

// Has waits until each cluster has so many Pods of each version of a workload in place, and all are ready: `0.0.1 0.0.1 0.0.2`.
func (f *Fixture) Has(workload, versions string) {
	f.T.Helper()
	for name := range f.Clusters {
		f.Eventually(workload+" in "+name, versions, func() string { return f.versionsOf(name, workload) })
	}
}

// versionsOf are the versions of the Pods of a workload in a cluster, in order; those that are not ready are not counted.
func (f *Fixture) versionsOf(cluster, workload string) string {
	var out []string
	for _, o := range f.hosts[cluster].all(pods) {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Name != workload || !podReady(o) {
			continue
		}
		_, version, _ := strings.Cut(imageOf(o), ":")
		out = append(out, version)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Uses waits until the template of a StatefulSet uses this in each cluster: the text of its ConfigMap, and the name of its Secret.
func (f *Fixture) Uses(name, text, secret string) {
	f.T.Helper()
	for cluster := range f.Clusters {
		f.Eventually(name+" uses in "+cluster, text+", "+secret, func() string {
			h := f.hosts[cluster]
			var set appsv1.StatefulSet
			h.read(statefulSets, namespace, name, &set)
			from := set.Spec.Template.Spec.Containers[0].EnvFrom
			var settings corev1.ConfigMap
			h.read(configMaps, namespace, from[0].ConfigMapRef.Name, &settings)
			return settings.Data["is"] + ", " + from[1].SecretRef.Name
		})
	}
}

// Partition is what the StatefulSet of the story says in each cluster, and whose it is.
func (f *Fixture) Partition() (out []string) {
	for _, name := range []string{clusterName(0), clusterName(1)} {
		var set appsv1.StatefulSet
		f.hosts[name].read(statefulSets, namespace, "db", &set)
		partition := *set.Spec.UpdateStrategy.RollingUpdate.Partition
		out = append(out, fmt.Sprint(set.Labels[shipper.OwnedByLabel], " ", partition, " ", set.Generation))
	}
	return out
}

// inPlaceStory has a StatefulSet and a DaemonSet that change at their steps: up, back from three Pods and from all, aborted, held by a
// block, and rolled back.
func inPlaceStory() Story {
	const old, young = "0.0.1 0.0.1 0.0.1 0.0.1", "0.0.2 0.0.2 0.0.2 0.0.2"
	const one, three = "0.0.1 0.0.1 0.0.1 0.0.2", "0.0.1 0.0.2 0.0.2 0.0.2"
	var first, contender, constant string
	var held []string
	strategy := steps{step("one", 100, 25, 100, 0), step("three", 50, 75, 50, 50), step("full on", 0, 100, 0, 100)}
	return Story{
		Name: "inplace", Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			app := f.Application(appName, "0.0.1", replicaCount, allIn())
			app.Spec.Template.Chart.Name, app.Spec.Template.Chart.Naming = "stateful", shipper.NamingByApplication
			f.Creates(app)
			first = f.Generation(0)
			f.Completes(first)
			constant = "constant" + lots.Suffix(lots.Release{App: appName, Name: first})
			f.Uses("db", "0.0.1 of revision 1", constant)
		},
		Parts: []Part{
			{Name: "up", Floor: replicaCount, Act: func(f *Fixture) {
				f.Upgrades("0.0.2", strategy)
				contender = f.Generation(1)
				f.WaitsForCommand(contender, 0)
				f.Has("db", one)
				f.Has("agent", "0.0.1")
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
				f.Has("db", three)
			}},
			{Name: "less", Floor: replicaCount, Act: func(f *Fixture) {
				f.Steps(contender, 0)
				f.WaitsForCommand(contender, 0)
				f.Has("db", one)
			}},
			{Name: "all", Floor: replicaCount, Act: func(f *Fixture) {
				f.Steps(contender, 2)
				f.Completes(contender)
				f.Has("db", young)
				f.Has("agent", "0.0.2")
				f.Uses("db", "0.0.2 of revision 2", constant)
			}},
			{Name: "back from all", Floor: replicaCount, Act: func(f *Fixture) {
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
				f.Has("db", three)
				f.Has("agent", "0.0.1")
				f.Steps(contender, 0)
				f.WaitsForCommand(contender, 0)
				f.Has("db", one)
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
				f.Has("db", three)
			}},
			{Name: "aborted", Floor: replicaCount, Act: func(f *Fixture) {
				f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
				f.IsGone("releases", contender)
				f.Settles(first)
				f.Has("db", old)
				f.Uses("db", "0.0.1 of revision 1", constant)
			}},
			{
				Name: "blocked", Floor: replicaCount,
				Act: func(f *Fixture) {
					s := slices.Clone(strategy)
					s[0].After, s[1].After = "1m", "1m"
					f.Upgrades("0.0.2", s)
					contender = f.Generation(1)
					f.Eventually("the step achieved", "0", func() string { return f.achieved(contender) })
					f.Has("db", one)
					f.Blocks("stop")
					time.Sleep(10 * time.Second)
					held = f.Partition()
					time.Sleep(5 * time.Minute)
				},
				Check: func(f *Fixture) {
					if now := f.Partition(); !slices.Equal(now, held) {
						f.laws.broken(3, "the StatefulSet changed while it was blocked: %v, was %v", now, held)
					}
				},
			},
			{Name: "goes on", Floor: replicaCount, Act: func(f *Fixture) {
				f.Deletes(&shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stop"}})
				f.Completes(contender)
				f.Has("db", young)
			}},
			{Name: "rolled back", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.RollbackTo = &shipper.RollbackTo{Release: first, Strategy: shipper.RollbackImmediate}
				})
				f.Completes(f.Generation(2))
				f.Has("db", old)
				f.Has("agent", "0.0.1")
				f.Uses("db", "0.0.1 of revision 1", constant)
			}},
		},
	}
}
