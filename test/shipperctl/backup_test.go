// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

// shipperctl runs the whole command line as a user, the administrator when there is none, and returns what it writes.
func shipperctl(t *testing.T, user, answers string, args ...string) (string, error) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(fleetOf(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(answers))
	args = append(args, "--kube-config", path)
	if user != "" {
		args = append(args, "--as", user)
	}
	cmd.SetArgs(args)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}

// works runs shipperctl as the administrator, which must succeed.
func works(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shipperctl(t, "", "", args...)
	if err != nil {
		t.Fatalf("shipperctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refuses runs shipperctl as a user, which must fail with an error that contains want.
func refuses(t *testing.T, user, want string, args ...string) string {
	t.Helper()
	out, err := shipperctl(t, user, "", args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("shipperctl %s: the error is\n%v\nand should contain\n%s\n%s", strings.Join(args, " "), err, want, out)
	}
	return out
}

// creates creates objects, each with the status that it has.
func creates(t *testing.T, objects ...client.Object) {
	t.Helper()
	c := management(t)
	for _, o := range objects {
		with := o.DeepCopyObject().(client.Object)
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
		if !strings.Contains(fmt.Sprintf("%T", o), "v1alpha1") {
			continue
		}
		with.SetResourceVersion(o.GetResourceVersion())
		with.SetUID(o.GetUID())
		if err := c.Status().Update(t.Context(), with); err != nil {
			t.Fatalf("writing the status of %T %s: %v", o, o.GetName(), err)
		}
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(with).Elem())
	}
}

// unkept lets an object go without a reconciler.
var unkept = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))

// ended deletes objects and waits until they are gone.
func ended(t *testing.T, objects ...client.Object) {
	t.Helper()
	c := management(t)
	for _, o := range objects {
		o := o.DeepCopyObject().(client.Object)
		if err := c.Patch(t.Context(), o.DeepCopyObject().(client.Object), unkept); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%T %s is still there: %v", o, o.GetName(), err)
			}
			return ""
		})
	}
}

// allow gives a user a role of its own.
func allow(t *testing.T, user, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	named := metav1.ObjectMeta{Namespace: namespace, Name: "test-" + user}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}
	if namespace == "" {
		creates(t, &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects})
		return
	}
	ref.Kind = "Role"
	creates(t, &rbacv1.Role{ObjectMeta: named, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects})
}

// every allows verbs on kinds.
func every(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// shop is an Application in a namespace of its own.
type shop struct {
	namespace *corev1.Namespace
	app       *shipper.Application
	rel       *shipper.Release
	targets   []client.Object
}

// open makes a shop with one complete Release on clusters, separated by commas.
func open(t *testing.T, name, clusters string) shop {
	t.Helper()
	s := shop{namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	values := shipper.ChartValues{"replicaCount": int64(2), "ratio": 0.5, "version": "1e3"}
	s.app = &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web", Annotations: map[string]string{
		shipper.AppHighestObservedGenerationAnnotation: "0", shipper.AppRequestedByAnnotation: "dev",
	}}}
	s.app.Spec.Template = shipper.ReleaseEnvironment{
		Chart:               shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example.com"},
		Values:              &values,
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "eu-west"}}},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
			Name: "full on", Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
		}}},
	}
	s.app.Status.ObservedGeneration, s.app.Status.Conditions = 1, conditions(shipper.ApplicationValidHistory)
	creates(t, s.namespace, s.app)
	var err error
	if s.rel, err = stamp.Release(s.app, nil); err != nil {
		t.Fatal(err)
	}
	s.rel.Annotations[shipper.ReleaseClustersAnnotation] = clusters
	s.rel.Status = shipper.ReleaseStatus{
		ObservedGeneration: 1, AchievedStep: &shipper.AchievedStep{Name: "full on"}, Conditions: conditions(shipper.ReleaseComplete),
	}
	creates(t, s.rel)
	child := metav1.ObjectMeta{
		Namespace: name, Name: s.rel.Name, Labels: s.rel.Labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: s.rel.Name, UID: s.rel.UID,
		}},
	}
	it := &shipper.InstallationTarget{ObjectMeta: child}
	ct := &shipper.CapacityTarget{ObjectMeta: child}
	tt := &shipper.TrafficTarget{ObjectMeta: child}
	it.Spec = shipper.InstallationTargetSpec{Clusters: strings.Split(clusters, ","), CanOverride: true}
	for _, cluster := range it.Spec.Clusters {
		ct.Spec.Clusters = append(ct.Spec.Clusters, shipper.ClusterCapacityTarget{Name: cluster, Percent: 100, TotalReplicaCount: 2})
		ct.Status.Clusters = append(ct.Status.Clusters, shipper.ClusterCapacityStatus{Name: cluster, AvailableReplicas: 2, AchievedPercent: 100})
		tt.Spec.Clusters = append(tt.Spec.Clusters, shipper.ClusterTrafficTarget{Name: cluster, Weight: 100})
		tt.Status.Clusters = append(tt.Status.Clusters, shipper.ClusterTrafficStatus{Name: cluster, AchievedTraffic: 100})
	}
	ct.Status.ObservedGeneration, tt.Status.ObservedGeneration = 1, 1
	creates(t, it, ct, tt)
	s.targets = []client.Object{it, ct, tt}
	return s
}

func conditions(kind string) []shipper.Condition {
	return []shipper.Condition{{Type: kind, Status: "True", LastTransitionTime: metav1.Unix(1e9, 0)}}
}

// backUpAndRestore covers what test/restore does not: refusals, interrupts, and
// blocks, overrides, Clusters and Secrets. Nothing of Shipper runs.
func backUpAndRestore(t *testing.T) {
	succeeds(t, "setup", "management", "--webhook-ignore")
	c, s := management(t), open(t, "shop", "eu-west-1,us")
	freeze := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "freeze"}}
	freeze.Spec.Message, freeze.Spec.TTL = "not now", &metav1.Duration{Duration: 48 * time.Hour}
	identity := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: shipper.IdentityName}, Data: map[string]string{"id": "a-cluster"},
	}
	creates(t, freeze, identity)
	overrides := map[string]string{
		shipper.RolloutBlockOverrideAnnotation: "shop/freeze", shipper.RolloutBlockOverrideReasonAnnotation: "fire",
		shipper.RolloutBlockOverrideStampAnnotation: `[{"block":"shop/freeze","uid":"` + string(freeze.UID) +
			`","user":"ann","time":"2026-01-01T00:00:00Z","reason":"fire"}]`,
	}
	for k, v := range overrides {
		metav1.SetMetaDataAnnotation(&s.rel.ObjectMeta, k, v)
	}
	if err := c.Update(t.Context(), s.rel); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup.json")
	halfABackupIsNone(t, path)
	args := []string{"-f", path, "--format", "json"}
	out := works(t, append([]string{"backup", "prepare", "-v", "--include-clusters", "--include-rollout-blocks"}, args...)...)
	want := fmt.Sprintf("NAMESPACE   RELEASE NAME     OWNING APPLICATION\nshop        %s   web\nBackup objects stored in %q\n",
		s.rel.Name, path)
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("what is said (-want +got)\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "[\n  {\n    \"application\": {") {
		t.Errorf("the file is no JSON: %v\n%.100s", err, text)
	}
	secret := get(t, c, &corev1.Secret{}, "shipper-system", "us")
	west := get(t, c, &shipper.Cluster{}, "", "us")
	ended(t, append(append(s.targets, s.rel, s.app, freeze, identity, west), &corev1.Secret{ObjectMeta: secret.ObjectMeta})...)

	itIsNotRestoredWhile(t, append([]string{"backup", "restore", "--yes"}, args...))
	out = works(t, append([]string{"backup", "restore", "--yes"}, args...)...)
	if !strings.Contains(out, " objects were created, ") {
		t.Errorf("it says\n%s", out)
	}
	isBack(t, s, freeze, overrides)
	again := get(t, c, &shipper.Cluster{}, "", "us")
	restored := get(t, c, &corev1.Secret{}, "shipper-system", "us")
	owner := []metav1.OwnerReference{{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Cluster", Name: "us", UID: again.UID}}
	if diff := cmp.Diff([]any{west.Spec, secret.Data, owner}, []any{again.Spec, restored.Data, restored.OwnerReferences}); diff != "" {
		t.Errorf("the Cluster and its Secret (-want +got)\n%s", diff)
	}
	if id := get(t, c, &corev1.ConfigMap{}, "shipper-system", shipper.IdentityName).Data["id"]; id != "a-cluster" {
		t.Errorf("the identity is %q", id)
	}
	before := versions(t)
	if out := works(t, append([]string{"backup", "restore", "--yes"}, args...)...); !strings.HasPrefix(out, "0 objects were created, ") {
		t.Errorf("the second time it says\n%s", out)
	}
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("the second time something was written\n%s", diff)
	}
	whatWasEditedStays(t, s, args)
	ended(t, freeze, s.rel, s.app)
}

// halfABackupIsNone runs as a user who may not read everything: the original wrote an empty file then.
func halfABackupIsNone(t *testing.T, path string) {
	t.Helper()
	allow(t, "half", "", every(shipper.GroupName, []string{"list"}, "applications", "releases"))
	refuses(t, "half", "listing installation targets: ", "backup", "prepare", "-f", path)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it has written a file: %v", err)
	}
	refuses(t, "", "reading the account of this Pod: ", "backup", "prepare", "-f", path, "--use-in-cluster-config")
	refuses(t, "", `--format is "xml": it must be yaml or json`, "backup", "prepare", "-f", path, "--format", "xml")
}

// itIsNotRestoredWhile Shipper runs or the cluster is another one; and what is interrupted goes on afterwards.
func itIsNotRestoredWhile(t *testing.T, restore []string) {
	t.Helper()
	labels, one := map[string]string{"app": "shipper"}, int32(1)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		},
	}}
	creates(t, d)
	refuses(t, "", "kubectl scale deployment shipper -n shipper-system --replicas=0", restore...)
	ended(t, d)
	other := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: shipper.IdentityName}, Data: map[string]string{"id": "another"},
	}
	creates(t, other)
	refuses(t, "", `this management cluster is "another" and the backup is of "a-cluster"`, restore...)
	ended(t, other)

	all := []string{"*"}
	allow(t, "clumsy", "",
		every("", []string{"get", "create"}, "namespaces", "secrets", "configmaps"), every("apps", all, "deployments"),
		every("coordination.k8s.io", all, "leases"),
		every(shipper.GroupName, all, "applications", "applications/status", "releases", "releases/status", "installationtargets", "clusters",
			"clusters/status", "rolloutblocks", "rolloutblocks/status", "installationtargets/status"),
		every(shipper.GroupName, []string{"get"}, "traffictargets", "capacitytargets"))
	const half = `application "shop/web" is not whole, restore again before Shipper starts: creating traffic target`
	out := refuses(t, "clumsy", half, restore...)
	if strings.Contains(out, "traffic target") {
		t.Errorf("it says of every object\n%s", out)
	}
	app := get(t, management(t), &shipper.Application{}, "shop", "web")
	if diff := cmp.Diff(shipper.ApplicationStatus{}, app.Status); diff != "" {
		t.Errorf("Shipper would take what is missing for deleted: (-want +got)\n%s", diff)
	}
}

// isBack compares what was restored with what was.
func isBack(t *testing.T, s shop, freeze *shipper.RolloutBlock, overrides map[string]string) {
	t.Helper()
	c := management(t)
	app := get(t, c, &shipper.Application{}, "shop", "web")
	if diff := cmp.Diff([]any{s.app.Spec, s.app.Annotations, s.app.Status}, []any{app.Spec, app.Annotations, app.Status}); diff != "" {
		t.Errorf("the Application (-want +got)\n%s", diff)
	}
	block := get(t, c, &shipper.RolloutBlock{}, "shop", "freeze")
	if got, want := block.Spec.ExpiresAt, freeze.CreationTimestamp.Add(48*time.Hour); got == nil || !got.Time.Equal(want) {
		t.Errorf("the block lifts itself at %v, want %s", got, want)
	}
	annotations := map[string]string{}
	for k, v := range s.rel.Annotations {
		annotations[k] = v
	}
	stamp := shipper.RolloutBlockOverrideStampAnnotation
	annotations[stamp] = strings.Replace(overrides[stamp], string(freeze.UID), string(block.UID), 1)
	rel := get(t, c, &shipper.Release{}, "shop", s.rel.Name)
	if rel.UID == s.rel.UID || rel.OwnerReferences[0].UID != app.UID {
		t.Errorf("Release %s belongs to %v, want %s", rel.UID, rel.OwnerReferences, app.UID)
	}
	was, is := []any{s.rel.Spec, annotations, s.rel.Labels, s.rel.Status}, []any{rel.Spec, rel.Annotations, rel.Labels, rel.Status}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the Release (-want +got)\n%s", diff)
	}
	ct := get(t, c, &shipper.CapacityTarget{}, "shop", s.rel.Name)
	want := shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{
		{Name: "eu-west-1", TotalReplicaCount: 2, AsFound: true}, {Name: "us", TotalReplicaCount: 2, AsFound: true},
	}}
	status := shipper.CapacityTargetStatus{Clusters: []shipper.ClusterCapacityStatus{
		{Name: "eu-west-1", AvailableReplicas: 2, AchievedPercent: 100}, {Name: "us", AvailableReplicas: 2, AchievedPercent: 100},
	}}
	if diff := cmp.Diff([]any{want, status, rel.UID}, []any{ct.Spec, ct.Status, ct.OwnerReferences[0].UID}); diff != "" {
		t.Errorf("the CapacityTarget (-want +got)\n%s", diff)
	}
}

// whatWasEditedStays: it is not known which of the two is wanted.
func whatWasEditedStays(t *testing.T, s shop, args []string) {
	t.Helper()
	c := management(t)
	app := get(t, c, &shipper.Application{}, "shop", "web")
	app.Annotations[shipper.RolloutBlockOverrideAnnotation] = "shop/freeze"
	app.Spec.Template.Chart.Version = "0.0.2"
	if err := c.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	ended(t, get(t, c, &shipper.TrafficTarget{}, "shop", s.rel.Name))
	refuses(t, "", `application "shop/web" is there and is not as in the backup: it is left as it is`,
		append([]string{"backup", "restore", "--yes"}, args...)...)
	if v := get(t, c, &shipper.Application{}, "shop", "web").Spec.Template.Chart.Version; v != "0.0.2" {
		t.Errorf("the Application was put back to %s", v)
	}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: s.rel.Name}, &shipper.TrafficTarget{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("what belongs to it was restored: %v", err)
	}
}
