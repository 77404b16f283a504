// SPDX-License-Identifier: Apache-2.0

package popular

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// often are the charts that `make test` rolls out; `make nightly` has the others, too. They have each kind of workload.
var often = []string{"podinfo", "onlineboutique", "wordpress", "postgresql", "redis", "ingress-nginx", "vault", "dex"}

// annotated are the annotations of Pods that an upgrade adds, the value podAnnotations of most charts.
var annotated = map[string]any{"example.com/try": "2"}

// another is what an upgrade changes, for charts that do not know podAnnotations, or not for all their Pods.
var another = map[string]shipper.ChartValues{
	"ghost":          {"mysql": map[string]any{"primary": map[string]any{"podAnnotations": annotated}}},
	"ingress-nginx":  {"controller": map[string]any{"podAnnotations": annotated}},
	"jenkins":        {"controller": map[string]any{"podAnnotations": annotated}},
	"n8n":            {"main": map[string]any{"podAnnotations": annotated}},
	"nats":           {"podTemplate": map[string]any{"merge": map[string]any{"metadata": map[string]any{"annotations": annotated}}}},
	"onlineboutique": {"images": map[string]any{"tag": "v0.10.5"}},
	"postgresql":     {"primary": map[string]any{"podAnnotations": annotated}},
	"grafana":        {"grafana": map[string]any{"podAnnotations": annotated}},
	"harbor":         {"core": map[string]any{"podAnnotations": annotated}, "database": map[string]any{"podAnnotations": annotated}},
	"redis":          {"master": map[string]any{"podAnnotations": annotated}, "replica": map[string]any{"podAnnotations": annotated}},
	"sonarqube":      {"annotations": annotated},
	"traefik":        {"deployment": map[string]any{"podAnnotations": annotated}},
	"vault":          {"server": map[string]any{"annotations": annotated}, "injector": map[string]any{"annotations": annotated}},
}

// needed are values without which a chart refuses its own upgrade, also by Helm.
var needed = map[string]shipper.ChartValues{"ghost": {"ghostPassword": "a password of this test"}}

// refused are the charts that Shipper refuses at admission, with what it says.
var refused = map[string]string{"keda": `asks for the namespace "kube-system"`}

func TestPopularCharts(t *testing.T) {
	charts.EachPopular(t, "../..", func(t *testing.T, of charts.PopularArchive) {
		if !slices.Contains(often, of.Name) {
			env.Nightly(t, "it takes a quarter of an hour with all charts")
		}
		world.Charts.Publish(of.Archive)
		s := &story{Rollout: world.Begin(t, of.Name+"-", of.Name), chart: of}
		s.tell()
	})
}

// story is one chart in one namespace.
type story struct {
	*env.Rollout

	chart charts.PopularArchive
}

func (s *story) tell() {
	err := s.User.Create(s.Ctx, s.application(), client.FieldOwner("kubectl-create"))
	if words, is := refused[s.chart.Name]; is {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), words) {
			s.Fatalf("error %v, want 422 with %q", err, words)
		}
		return
	}
	s.Must("creating the application", err)
	first := s.Release(0)
	s.Completes(first)
	before := s.configuration()

	watching := s.watchEndpoints()
	s.Edits(func(app *shipper.Application) {
		values := maps.Clone(*app.Spec.Template.Values)
		maps.Copy(values, s.change())
		app.Spec.Template.Values = &values
	})
	second := s.Release(1)
	for step := range int32(3) {
		if step > 0 {
			s.Steps(second, step)
		}
		if step == 2 {
			s.Completes(second)
		} else {
			s.WaitsForCommand(second, step)
		}
	}
	if after := s.configuration(); cmp.Equal(before, after) {
		s.Error("the upgrade changed no Pod")
	}

	s.Edits(func(app *shipper.Application) {
		app.Spec.RollbackTo = &shipper.RollbackTo{Release: first, Strategy: shipper.RollbackImmediate}
	})
	s.Completes(s.Release(2))
	if diff := cmp.Diff(before, s.configuration()); diff != "" {
		s.Errorf("what Pods are made of before the upgrade, and after the rollback (-before +after)\n%s", diff)
	}
	if lost := watching(); len(lost) > 0 {
		s.Errorf("Services without endpoints: %s", strings.Join(lost, "; "))
	}
	s.deletes()
}

// application is the Application: a chart as it is.
func (s *story) application() *shipper.Application {
	app := world.Application(s.Namespace, s.App, s.chart.Version, 1, env.Vanguard(), westRegion)
	app.Spec.Template.Chart.Name = s.chart.Name
	app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
	values := shipper.ChartValues(maps.Clone(s.chart.Values))
	if values == nil {
		values = shipper.ChartValues{}
	}
	maps.Copy(values, needed[s.chart.Name])
	app.Spec.Template.Values = &values
	return app
}

func (s *story) change() shipper.ChartValues {
	if change, is := another[s.chart.Name]; is {
		return change
	}
	return shipper.ChartValues{"podAnnotations": annotated}
}

// configuration is what the ready Pods of the namespace are made of, one text for each kind of Pod: its annotations and containers, and
// what the ConfigMaps and Secrets hold that these use. Names that Releases give are left out.
func (s *story) configuration() []string {
	var pods corev1.PodList
	s.Must("listing pods", world.Clusters[west].List(s.Ctx, &pods, client.InNamespace(s.Namespace)))
	var out []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod)
		if pod.DeletionTimestamp != nil || owner == nil || owner.Kind == "Job" {
			continue
		}
		out = append(out, s.describe(pod))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *story) describe(pod *corev1.Pod) string {
	var used []string
	spec := pod.Spec.DeepCopy()
	for i := range spec.Volumes {
		switch v := &spec.Volumes[i]; {
		case v.ConfigMap != nil:
			used = append(used, s.content(&corev1.ConfigMap{}, v.ConfigMap.Name))
		case v.Secret != nil:
			used = append(used, s.content(&corev1.Secret{}, v.Secret.SecretName))
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if source.ConfigMap != nil {
					used = append(used, s.content(&corev1.ConfigMap{}, source.ConfigMap.Name))
				}
				if source.Secret != nil {
					used = append(used, s.content(&corev1.Secret{}, source.Secret.Name))
				}
			}
		}
	}
	var containers []string
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef != nil {
				used = append(used, s.content(&corev1.ConfigMap{}, from.ConfigMapRef.Name))
			}
			if from.SecretRef != nil {
				used = append(used, s.content(&corev1.Secret{}, from.SecretRef.Name))
			}
		}
		var variables []string
		for _, e := range c.Env {
			switch {
			case e.ValueFrom == nil:
				variables = append(variables, e.Name+"="+e.Value)
			case e.ValueFrom.ConfigMapKeyRef != nil:
				used = append(used, s.content(&corev1.ConfigMap{}, e.ValueFrom.ConfigMapKeyRef.Name))
			case e.ValueFrom.SecretKeyRef != nil:
				used = append(used, s.content(&corev1.Secret{}, e.ValueFrom.SecretKeyRef.Name))
			}
		}
		containers = append(containers, fmt.Sprint(c.Name, c.Image, c.Command, c.Args, variables))
	}
	annotations := pod.GetAnnotations()
	for key := range annotations {
		// The checksum of a password that was looked up is not that of the template which made it.
		if strings.HasPrefix(key, "kwok.") || key == corev1.PodDeletionCost || strings.HasPrefix(key, "checksum/") {
			delete(annotations, key)
		}
	}
	slices.Sort(used)
	return fmt.Sprint(annotations, containers, slices.Compact(used))
}

// content is what a ConfigMap or Secret that Pods use holds.
func (s *story) content(into client.Object, name string) string {
	if err := world.Clusters[west].Get(s.Ctx, s.Key(name), into); apierrors.IsNotFound(err) {
		return "nothing" // it is optional, or another chart's
	} else if err != nil {
		s.Fatal(err)
	}
	switch o := into.(type) {
	case *corev1.ConfigMap:
		return fmt.Sprint(o.Data)
	case *corev1.Secret:
		return fmt.Sprintf("%s", o.Data)
	}
	return ""
}

// deletes deletes the Application, and requires that nothing is left but what Helm leaves: claims, and what is annotated to be kept.
func (s *story) deletes() {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.App}}
	s.Must("deleting the application", s.User.Delete(s.Ctx, app))
	s.Eventually("what is left", "", func() (string, error) {
		var left []string
		for _, list := range []client.ObjectList{
			&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &appsv1.DeploymentList{},
			&appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
		} {
			if err := world.Clusters[west].List(s.Ctx, list, client.InNamespace(s.Namespace)); err != nil {
				return "", err
			}
			left = append(left, leftIn(list)...)
		}
		var released shipper.ReleaseList
		if err := world.Management.List(s.Ctx, &released, client.InNamespace(s.Namespace)); err != nil {
			return "", err
		}
		for i := range released.Items {
			left = append(left, "Release "+released.Items[i].Name)
		}
		return strings.Join(left, ", "), nil
	})
}

func leftIn(list client.ObjectList) (out []string) {
	see := func(kind string, o client.Object) {
		if o.GetName() != "kube-root-ca.crt" && o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			out = append(out, kind+" "+o.GetName())
		}
	}
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			see("Pod", &list.Items[i])
		}
	case *corev1.ServiceList:
		for i := range list.Items {
			see("Service", &list.Items[i])
		}
	case *corev1.ConfigMapList:
		for i := range list.Items {
			see("ConfigMap", &list.Items[i])
		}
	case *corev1.SecretList:
		for i := range list.Items {
			see("Secret", &list.Items[i])
		}
	case *appsv1.DeploymentList:
		for i := range list.Items {
			see("Deployment", &list.Items[i])
		}
	case *appsv1.StatefulSetList:
		for i := range list.Items {
			see("StatefulSet", &list.Items[i])
		}
	case *appsv1.DaemonSetList:
		for i := range list.Items {
			see("DaemonSet", &list.Items[i])
		}
	}
	return out
}
