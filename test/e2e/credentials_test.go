// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
)

// TestCredentialsOfTheNamespaceOpenItsRepository has a user who may edit Applications, first without and then with the right
// to read the Secret.
func TestCredentialsOfTheNamespaceOpenItsRepository(t *testing.T) {
	const password = "n0body-sees-this"
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); got != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		world.Charts.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	onTwoClusters(t, func(s *fixture) {
		s.Must("creating the secret", world.Management.Create(s.Ctx, &corev1.Secret{
			ObjectMeta: s.forRepositories("opener", guarded.URL+"/charts"), Type: corev1.SecretTypeBasicAuth,
			StringData: map[string]string{"username": "ann", "password": password},
		}))
		s.letsShipperRead()
		app := s.application("~0.0", 1, allIn)
		app.Spec.Template.Chart.RepoURL = guarded.URL + "/charts"
		app.Spec.Template.Chart.Credentials.SecretName = "opener"
		dev, _ := s.as("dev")
		s.refused("naming a secret of others", dev.User.Create(s.Ctx, app.DeepCopy()),
			"credentials.secretName: Forbidden: dev may not get Secret "+s.Namespace+"/opener")
		owner, heard := s.as("owner", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"opener"}, Verbs: []string{"get"},
		})
		owner.applies(app)
		rel := s.Release(0)
		s.Completes(rel)
		s.readyPods(rel, 1)
		said := append(heard.about(), world.Pod.Reconciler.Tail(), world.Pod.Webhook.Tail())
		for _, list := range []client.ObjectList{
			&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &eventsv1.EventList{},
		} {
			s.Must("listing what was written", world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace)))
			text, err := json.Marshal(list)
			s.Must("writing it down", err)
			said = append(said, string(text))
		}
		for _, text := range said {
			if strings.Contains(text, password) {
				t.Errorf("the password was disclosed: %s", text)
			}
		}
	})
}

// forRepositories is the metadata of a Secret whose owner allows Shipper to send it to a URL and to the paths below.
func (s *fixture) forRepositories(name, to string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: s.Namespace, Name: name, Labels: map[string]string{shipper.RepositoryCredentialsLabel: "true"},
		Annotations: map[string]string{shipper.RepositoryURLAnnotation: to},
	}
}

// letsShipperRead grants Shipper the right to read Secrets, as the namespace's owner does.
func (s *fixture) letsShipperRead() *rbacv1.RoleBinding {
	s.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: shipper.NamespaceReader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.NamespaceReader},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	}
	s.Must("letting Shipper read Secrets", world.Management.Create(s.Ctx, binding))
	s.Eventually("whether Shipper may read Secrets", "true", s.shipperReads())
	return binding
}

// shipperReads reports whether the API server lets Shipper read the Secrets of the namespace.
func (s *fixture) shipperReads() func() (string, error) {
	return func() (string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.Namespace, Resource: "secrets", Verb: "get", Name: "opener",
			},
		}}
		err := world.Management.Create(s.Ctx, review)
		return fmt.Sprint(review.Status.Allowed), err
	}
}

// TestWhoOwnsTheNamespaceIsToldHowToLetShipperRead runs the commands that the webhook's refusal prints, and then those of the
// condition, when the right was revoked before the chart was fetched. It is not parallel: all tests share the reconciler.
func TestWhoOwnsTheNamespaceIsToldHowToLetShipperRead(t *testing.T) {
	repository, err := charts.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repository.Close)
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	s.Must("creating the secret", world.Management.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "opener"}, Type: corev1.SecretTypeBasicAuth,
		StringData: map[string]string{"username": "ann", "password": "s3cret"},
	}))
	repository.Publish(s.repacked("test-nginx", "0.0.1")) // an archive of its own: Shipper would not fetch a cached one
	app := s.application("0.0.1", 1, allIn)
	app.Spec.Template.Chart.RepoURL, app.Spec.Template.Chart.Credentials.SecretName = repository.URL, "opener"
	refusal := s.User.Create(s.Ctx, app.DeepCopy())
	s.refused("naming a secret that Shipper may not read", refusal,
		"credentials.secretName", "Shipper may not read Secret "+s.Namespace+"/opener")
	told := s.toldToBind(refusal.Error())
	s.kubectl(told...)
	s.Eventually("whether Shipper may read Secrets", "true", s.shipperReads())
	refusal = s.User.Create(s.Ctx, app.DeepCopy())
	s.refused("naming a secret that is not for repositories", refusal,
		"credentials.secretName", "does not say that it is for chart repositories")
	for _, command := range s.toldToMark(refusal.Error()) {
		s.kubectl(strings.Fields(command)...)
	}

	s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
	s.applies(app)
	s.kubectl("delete", "rolebinding", shipper.NamespaceReader, "-n", s.Namespace)
	s.Eventually("whether Shipper may read Secrets", "false", s.shipperReads())
	s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx))
	s.complains(s.App, shipper.ChartFetchFailure, "Shipper may not read Secret "+s.Namespace+"/opener")
	said, err := s.complaints(s.App)
	s.Must("reading conditions", err)
	if diff := cmp.Diff(told, s.toldToBind(said)); diff != "" {
		t.Errorf("the condition advises something else than the refusal (-refusal +condition)\n%s", diff)
	}
	s.kubectl(told...)
	rel := s.Release(0)
	s.Completes(rel)
	s.readyPods(rel, 1)
}

// toldToBind returns the kubectl arguments that the message advises for the RoleBinding.
func (s *fixture) toldToBind(message string) []string {
	s.Helper()
	command := regexp.MustCompile(`kubectl (create rolebinding \S+ -n \S+ --clusterrole=\S+ --serviceaccount=[\w:-]+)`)
	found := command.FindStringSubmatch(message)
	if found == nil {
		s.Fatalf("it does not say how to let Shipper read: %s", message)
	}
	return strings.Fields(found[1])
}

// toldToMark returns the kubectl arguments of the two commands that the message advises for the Secret.
func (s *fixture) toldToMark(message string) []string {
	s.Helper()
	found := regexp.MustCompile(`kubectl (label secret [^&]+) && kubectl (annotate secret [^"]+)`).FindStringSubmatch(message)
	if found == nil {
		s.Fatalf("it does not say how to mark the Secret: %s", message)
	}
	return found[1:]
}

// kubectl runs kubectl in the management cluster as the administrator.
func (s *fixture) kubectl(args ...string) {
	s.Helper()
	path, err := fleet.Kubectl()
	s.Must("finding kubectl", err)
	out, err := exec.CommandContext(s.Ctx, path, append(args, "--kubeconfig", world.Fleet.Management.Kubeconfig)...).CombinedOutput()
	if err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
