// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// TestUpgradeInTheMiddleOfAStep is not parallel: all tests share Shipper. One rollout is between two steps; of the other,
// half of the contender's Pods are requested and not ready. The old Pod ends, setup upgrades an older installation, a new Pod
// starts.
func TestUpgradeInTheMiddleOfAStep(t *testing.T) {
	env.Nightly(t, "test/shipperctl sets up over what older versions and hands have left, and says what it changes")
	resting := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	incumbent, contender := resting.vanguardOverAllIn(4)
	resting.Steps(contender, 1)
	resting.WaitsForCommand(contender, 1)
	resting.readyPods(incumbent, 2)
	resting.endpoints(4)
	resting.comesToRest()
	var witnesses []*witness
	for _, c := range world.Fleet.Applications {
		w, err := newWitness(resting.Ctx, c, resting.Namespace)
		resting.Must("watching "+c.Name, err)
		witnesses = append(witnesses, w)
	}
	moving := begin(t, resting.clusters, resting.regions)
	before, next := moving.onItsWay()
	served := moving.serving()

	resting.Must("ending Shipper", world.Pod.Stop())
	up := resting.installation()
	resting.degrade()
	resting.setsUp()
	if diff := cmp.Diff(content(up), content(resting.installation())); diff != "" {
		t.Errorf("what setting up has left of the older version (-want +got)\n%s", diff)
	}
	twice := resting.installation()
	resting.setsUp()
	if diff := cmp.Diff(versions(twice), versions(resting.installation())); diff != "" {
		t.Errorf("setting up a second time has written\n%s", diff)
	}
	var err error
	world.Pod, err = pod.Start(resting.Ctx, world.PodOptions)
	resting.Must("starting Shipper", err)
	resting.Must("joining", join(resting.Ctx))
	if diff := cmp.Diff(versions(twice), versions(resting.installation())); diff != "" {
		t.Errorf("joining has written\n%s", diff)
	}

	moving.WaitsForCommand(next, 1)
	moving.readyPods(next, 2)
	moving.readyPods(before, 2)
	moving.endpoints(4)
	if least := served(); least < 4 {
		t.Errorf("a cluster served with %d endpoints meanwhile, want 4 at least", least)
	}
	for _, w := range witnesses {
		for _, moved := range resting.movements(w) {
			t.Errorf("it moved: %s", moved)
		}
		if n := w.happened(); n > 0 {
			t.Errorf("%d writes in %s to objects at rest, want none", n, w.cluster.Name)
		}
	}
	for s, name := range map[*fixture]string{resting: contender, moving: next} {
		s.Steps(name, 2)
		s.Completes(name)
		s.readyPods(name, 4)
	}
}

// TestUpgradesNeitherLoosenNorShutTheGate is not parallel: other tests need the webhooks, which the API server ignores at
// times here.
func TestUpgradesNeitherLoosenNorShutTheGate(t *testing.T) {
	env.Nightly(t, "test/shipperctl sets up over what older versions and hands have left, and says what it changes")
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	for _, step := range []struct {
		do    string
		flags []string
		want  string
	}{
		{"setup", nil, "Fail"},
		{"setup", []string{"--webhook-ignore"}, "Ignore"},
		{"setup", nil, "Ignore"},
		{"join", nil, "Fail"},
		{"setup", nil, "Fail"},
	} {
		if step.do == "join" {
			s.Must("joining", join(s.Ctx))
		} else {
			s.setsUp(step.flags...)
		}
		if got := s.policies(); got != step.want {
			t.Errorf("after %s %v the failurePolicy is %s, want %s", step.do, step.flags, got, step.want)
		}
	}
}

// onItsWay rolls version 0.0.2 over 0.0.1, and returns while half of the contender's Pods are requested and not ready, in
// every cluster.
func (s *fixture) onItsWay() (incumbent, contender string) {
	s.Helper()
	s.applies(s.application("0.0.1", 4, allIn))
	incumbent = s.Release(0)
	s.Completes(incumbent)
	next := s.application("0.0.2", 4, vanguard)
	(*next.Spec.Template.Values)["image"] = map[string]any{"tag": "slow"}
	s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	contender = s.Release(1)
	s.WaitsForCommand(contender, 0)
	s.Steps(contender, 1)
	for _, cluster := range s.clusters {
		s.Eventually("Pods that "+contender+" is to have in "+cluster, "2", func() (string, error) {
			deployment := &appsv1.Deployment{}
			err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: contender + "-test-nginx"}, deployment)
			if deployment.Spec.Replicas == nil {
				return "none", err
			}
			return fmt.Sprint(*deployment.Spec.Replicas), err
		})
	}
	return incumbent, contender
}

// setsUp runs shipperctl clusters setup management.
func (s *fixture) setsUp(flags ...string) {
	s.Helper()
	args := append([]string{"clusters", "setup", "management", "--webhook-url", pod.WebhookURL(world.PodOptions.WebhookPort)}, flags...)
	s.Must("setting up", pod.Shipperctl(s.Ctx, world.Fleet, world.PodOptions.Bin, args...))
}

// installed lists the kinds of objects that setup creates in the management cluster.
var installed = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Namespace"},
}

// installation returns the objects of Shipper's installation in the management cluster, by kind and name.
func (s *fixture) installation() map[string]*unstructured.Unstructured {
	s.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, gvk := range installed {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		s.Must("listing "+gvk.Kind, world.Management.List(s.Ctx, list))
		for i := range list.Items {
			o := &list.Items[i]
			if strings.Contains(o.GetNamespace()+"/"+o.GetName(), "shipper") {
				out[gvk.Kind+" "+o.GetName()] = o
			}
		}
	}
	return out
}

// content returns the objects without the fields that API servers write.
func content(all map[string]*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, o := range all {
		o := maps.Clone(o.Object)
		delete(o, "metadata")
		delete(o, "status")
		out[key] = o
	}
	return out
}

func versions(all map[string]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for key, o := range all {
		out[key] = o.GetResourceVersion()
	}
	return out
}

// degrade turns the installation into one of an older version, which had fewer fields, rights, webhooks and policies.
func (s *fixture) degrade() {
	s.Helper()
	all := s.installation()
	change := func(key string, how func(o map[string]any)) {
		o := all[key]
		if o == nil {
			s.Fatalf("there is no %s", key)
		}
		how(o.Object)
		s.Must("degrading "+key, world.Management.Update(s.Ctx, o))
	}
	shorten := func(list string) func(map[string]any) {
		return func(o map[string]any) { o[list] = o[list].([]any)[1:] }
	}
	change("CustomResourceDefinition releases.shipper.booking.com", func(o map[string]any) {
		version := o["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		delete(version, "additionalPrinterColumns")
		unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "status", "properties", "observedGeneration")
	})
	change("ClusterRole shipper:management-cluster", shorten("rules"))
	change("Role shipper:management-cluster", shorten("rules"))
	change("ClusterRole shipper:edit", shorten("rules"))
	change("ValidatingWebhookConfiguration shipper.booking.com", shorten("webhooks"))
	change("MutatingWebhookConfiguration shipper.booking.com", shorten("webhooks"))
	for _, key := range []string{"ClusterRole shipper:sre", "ValidatingAdmissionPolicyBinding blocks.shipper.booking.com"} {
		s.Must("deleting "+key, world.Management.Delete(s.Ctx, all[key]))
	}
}

// policies lists the values of failurePolicy of the webhooks, except for those that are always Ignore, or always Fail.
func (s *fixture) policies() string {
	s.Helper()
	seen := map[string]bool{}
	for key, o := range s.installation() {
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		s.Must("reading "+key, err)
		for _, w := range webhooks {
			webhook := w.(map[string]any)
			name := webhook["name"].(string)
			first, _, _ := strings.Cut(name, ".")
			if !slices.Contains([]string{"collected", "namespace", "envelope", "resourcesnapshot"}, first) {
				seen[webhook["failurePolicy"].(string)] = true
			}
		}
	}
	if len(seen) != 1 {
		return fmt.Sprint(seen)
	}
	for policy := range seen {
		return policy
	}
	return ""
}
