// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The values that the Secret of these tests has, one after the other.
const (
	canary = "k33p-this-to-yourself"
	other  = canary + "-too"
)

// TestConfigRollsBackWithCode takes values from a ConfigMap and a Secret, rolls out later values of both, and rolls back
// after both are deleted. No status, log, metric or event may contain the Secret's values.
func TestConfigRollsBackWithCode(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		owner, dev, heard := s.keepsValues()
		app := s.fromSources()
		s.refusesWhoMayNotRead(dev, app)
		app.Spec.DriftPolicy = shipper.DriftReport
		owner.applies(app)
		first := s.Release(0)
		s.Completes(first)
		s.message(canary)

		s.holds("hidden", "message: "+other)
		dev.Edits(func(app *shipper.Application) { app.Annotations["note"] = "none" })
		dev.Edits(func(app *shipper.Application) { app.Spec.Template.ValuesDigests = nil }) // as a manifest that a pipeline applies
		s.Release(0)
		owner.Edits(refreshed)
		second := s.Release(1)
		s.Completes(second)
		s.message(other)
		s.saysChanged(second, "valuesFrom[Secret/hidden/values.yaml]")

		s.deletes("hidden")
		s.refusesWhatIsGone(owner)
		dev.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{} })
		third := s.Release(2)
		s.Completes(third)
		s.message(canary)
		s.drifts(third)

		// Errors from here on would quote the secret value.
		s.creates("hidden", "message: "+other+"\nreplicaCount: "+other)
		owner.Edits(refreshed)
		s.Eventually("why the release is not scheduled", "ChartError", s.scheduled(s.releaseAfter(third)))
		s.tellsNobody(append(heard.about(), s.commands(first, third)...))
		s.keptFor(first, second, third)
	})
}

// keepsValues creates the sources, lets Shipper read and keep them, and returns two users: owner may read the Secret, dev may
// not.
func (s *fixture) keepsValues() (owner, dev *fixture, heard *warnings) {
	s.Helper()
	account := "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount
	s.Must("letting Shipper keep values", world.Management.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: shipper.ValuesKeeper},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ValuesKeeper},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	}))
	for _, verb := range []string{"get", "create"} {
		s.may(account, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{verb}})
	}
	s.Must("creating the config map", world.Management.Create(s.Ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "settings"},
		Data:       map[string]string{"values.yaml": "message: overridden\nreplicaCount: 2"},
	}))
	s.creates("hidden", "message: "+canary)
	owner, heard = s.as("owner", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get"},
	})
	dev, _ = s.as("dev", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	return owner, dev, heard
}

// fromSources returns the Application of these tests.
func (s *fixture) fromSources() *shipper.Application {
	app := s.application("0.0.1", 1, allIn)
	app.Spec.Template.Chart.Name, app.Spec.Template.Values = "configmap", nil
	app.Spec.Template.ValuesFrom = []shipper.ValuesSource{
		{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "settings"}},
		{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}},
		{SecretKeyRef: &shipper.ValuesKeyRef{Name: "nowhere", Optional: true}},
	}
	return app
}

// refreshed requests that the sources are read again.
func refreshed(app *shipper.Application) {
	app.Annotations[shipper.AppValuesRefreshAnnotation] = fmt.Sprint("after ", app.ResourceVersion)
}

func (s *fixture) refusesWhoMayNotRead(dev *fixture, app *shipper.Application) {
	s.Helper()
	err := dev.User.Create(s.Ctx, app.DeepCopy())
	s.refused("naming a secret of others", err,
		`spec.template.valuesFrom[1].secretKeyRef.name: Forbidden: dev may not get Secret `+s.Namespace+`/hidden`)
	if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "valuesFrom[0]") {
		s.Errorf("refused with %v", err)
	}
}

func (s *fixture) refusesWhatIsGone(owner *fixture) {
	s.Helper()
	err := owner.TryEdit(refreshed)
	s.refused("naming what is gone", err,
		`spec.template.valuesFrom[1].secretKeyRef.name: Invalid value: "hidden": there is no Secret `+s.Namespace+"/hidden")
}

func (s *fixture) creates(secret, text string) {
	s.Helper()
	s.Must("creating the secret", world.Management.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: secret}, StringData: map[string]string{"values.yaml": text},
	}))
}

func (s *fixture) deletes(secret string) {
	s.Helper()
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: secret}
	s.Must("deleting the secret", world.Management.Delete(s.Ctx, &corev1.Secret{ObjectMeta: meta}))
}

func (s *fixture) holds(secret, text string) {
	s.Helper()
	s.deletes(secret)
	s.creates(secret, text)
}

// message waits until the rendered ConfigMap has a message in both clusters.
func (s *fixture) message(want string) {
	s.Helper()
	for _, name := range s.clusters {
		s.Eventually("what is rendered in "+name, want, func() (string, error) {
			cm := &corev1.ConfigMap{}
			err := world.Clusters[name].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: "configmap-settings"}, cm)
			return cm.Data["message"], err
		})
	}
}

// saysChanged compares the changed values in a Release's summary.
func (s *fixture) saysChanged(release, want string) {
	s.Helper()
	s.Eventually("what values have changed in "+release, want, func() (string, error) {
		rel, err := s.Get(release)
		if err != nil || rel.Status.Summary == nil {
			return "", err
		}
		return rel.Status.Summary.ValuesChanged, nil
	})
}

// drifts edits by hand the object that is rendered from the Secret.
func (s *fixture) drifts(release string) {
	s.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "configmap-settings"}}
	s.Must("editing what is rendered", world.Clusters[west].Patch(s.Ctx, cm,
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"message":"by hand"}}`)), client.FieldOwner("by-hand")))
	s.Eventually("drift in "+west, "ConfigMap object 1 data.message:  ->  by by-hand\n", s.drift(release, west))
}

// scheduled returns the reason why a Release is not scheduled.
func (s *fixture) scheduled(release string) func() (string, error) {
	return func() (string, error) {
		rel, err := s.Get(release)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseScheduled); c != nil {
			return c.Reason, err
		}
		return "", err
	}
}

// commands returns the output of the shipperctl commands that read the Application.
func (s *fixture) commands(first, last string) []string {
	s.Helper()
	file := filepath.Join(s.TempDir(), "backup.yaml")
	in := []string{"-n", s.Namespace}
	var out []string
	for _, args := range [][]string{
		{"rollout", "status", s.App}, {"rollout", "history", s.App}, {"rollout", "history", s.App, "-o", "json"},
		{"rollout", "diff", s.App}, {"rollout", "diff", s.App, first, last, "-o", "json"}, {"rollout", "diff", s.App, "--drift"},
		{"plan", "-f", s.manifest(s.fromSources())},
	} {
		text, err := s.administers(append(args, in...)...)
		s.Must("shipperctl "+strings.Join(args, " "), err)
		out = append(out, text)
	}
	_, err := s.administers("backup", "prepare", "-f", file, "--include-charts")
	s.Must("backing up", err)
	saved, err := os.ReadFile(file)
	s.Must("reading the backup", err)
	if !strings.Contains(string(saved), "Secret/hidden/values.yaml: pbkdf2:") {
		s.Error("the backup has nothing of the values' digests")
	}
	return append(out, string(saved))
}

// tellsNobody searches all that Shipper has written for the secret value, except Secrets that keep it and objects that charts
// render.
func (s *fixture) tellsNobody(said []string) {
	s.Helper()
	lists := []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{},
		&shipper.TrafficTargetList{}, &shipper.ChartSnapshotList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}, &appsv1.DeploymentList{},
	}
	for _, list := range lists {
		said = append(said, s.texts(world.Management, list))
	}
	for _, c := range world.Clusters {
		for _, list := range lists[len(lists)-3:] {
			said = append(said, s.texts(c, list))
		}
	}
	for _, p := range []string{world.Pod.Reconciler.Log, world.Pod.Webhook.Log} {
		text, err := os.ReadFile(p)
		s.Must("reading a log", err)
		said = append(said, string(text))
	}
	for _, url := range []string{world.Pod.Reconciler.Metrics, world.Pod.Webhook.Metrics} {
		answer, err := http.Get(url)
		s.Must("reading metrics", err)
		text, err := io.ReadAll(answer.Body)
		s.Must("reading metrics", err)
		answer.Body.Close()
		said = append(said, string(text))
	}
	for _, event := range s.audits() {
		text, err := json.Marshal(event.Annotations)
		s.Must("writing it down", err)
		said = append(said, string(text))
	}
	if len(said) < 30 {
		s.Errorf("only %d texts were looked at", len(said))
	}
	for _, text := range said {
		if at := strings.Index(text, canary); at >= 0 {
			s.Errorf("a secret value was disclosed: %s", text[max(0, at-600):min(len(text), at+200)])
		}
	}
}

// texts returns the objects of a namespace as text, without those that the chart renders the secret to.
func (s *fixture) texts(in client.Client, list client.ObjectList) string {
	s.Helper()
	s.Must("listing what was written", in.List(s.Ctx, list, client.InNamespace(s.Namespace)))
	if maps, ok := list.(*corev1.ConfigMapList); ok {
		maps.Items = slices.DeleteFunc(maps.Items, func(cm corev1.ConfigMap) bool { return cm.Name == "configmap-settings" })
	}
	text, err := json.Marshal(list)
	s.Must("writing it down", err)
	return string(text)
}

// keptFor checks that the Secrets that keep the values of Releases are immutable and have the admitted values.
func (s *fixture) keptFor(releases ...string) {
	s.Helper()
	for i, name := range releases {
		secret := &corev1.Secret{}
		s.Must("reading what is kept", world.Management.Get(s.Ctx,
			client.ObjectKey{Namespace: s.Namespace, Name: shipper.ValuesSecretName(name)}, secret))
		want := "message: " + []string{canary, other, canary}[i]
		fixed := secret.Immutable != nil && *secret.Immutable && secret.Type == shipper.ValuesSecretType
		if got := string(secret.Data["1"]); got != want || !fixed {
			s.Errorf("for %s it keeps %q, want %q, as %s", name, got, want, secret.Type)
		}
		s.renders(name, []string{canary, other, canary}[i], "overridden", "--cluster", west)
	}
}
