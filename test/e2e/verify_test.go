// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// keysName is the Secret with the keys that verify charts.
const keysName = "release-keys"

// holdsKeys puts a key into a Secret.
func (s *fixture) holdsKeys(secret string, ring []byte) {
	s.Helper()
	s.Must("creating the keys", world.Management.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: secret}, Data: map[string][]byte{"pubring.gpg": ring},
	}))
}

// showsKeys lets Shipper read the keys.
func (s *fixture) showsKeys() {
	s.Helper()
	s.Must("letting Shipper read them", world.Management.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: shipper.NamespaceReader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.NamespaceReader},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	}))
	s.may("system:serviceaccount:"+shipper.SystemNamespace+":"+shipper.ManagementServiceAccount, mayGetKeys)
}

// mayGetKeys is the right to get the Secret of the keys and another Secret of the user's.
var mayGetKeys = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{keysName, "mine"}, Verbs: []string{"get"},
}

// demandsSignatures creates a block that allows only charts signed by this key.
func (s *fixture) demandsSignatures(fingerprint string) {
	s.Helper()
	s.blocksWith(func(spec *shipper.RolloutBlockSpec) {
		spec.Message, spec.OverridePolicy = "charts are signed here, see the wiki", shipper.RolloutBlockNobody
		spec.MatchConditions = []shipper.RolloutBlockMatchCondition{
			{Name: "an-application", Expression: `request.kind.kind == "Application" && object != null`},
			{Name: "signed-by-nobody-we-know", Expression: `!(object.spec.template.chart.?verify.signer.orValue("") in ["` + fingerprint + `"])`},
		}
	})
}

// TestChartsAreSignedOrNotRolledOut uses an archive without a signature first, and then with wrong signatures. In the end the
// repository and the keys are deleted, and a rollback to a verified Release still works.
func TestChartsAreSignedOrNotRolledOut(t *testing.T) {
	ann, bob := charts.NewSigner(t, "ann", nil), charts.NewSigner(t, "bob", nil)
	onTwoClusters(t, func(s *fixture) {
		repository, err := charts.Start()
		s.Must("starting a repository", err)
		t.Cleanup(repository.Close)
		one, two := s.repacked("test-nginx", "0.0.1"), s.repacked("test-nginx", "0.0.2")
		repository.Publish(one)
		repository.Publish(two)
		s.holdsKeys(keysName, ann.Public())
		s.holdsKeys("mine", bob.Public())
		s.showsKeys()
		dev, _ := s.as("dev", mayGetKeys)

		app := s.application("0.0.1", 2, allIn)
		app.Spec.Template.Chart.RepoURL = repository.URL
		dev.applies(app)
		first := s.Release(0)
		s.Completes(first)
		s.Eventually("what is kept of the chart", "all", func() (string, error) {
			err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: shipper.ChartSnapshotName(one.Digest)},
				&shipper.ChartSnapshot{})
			return "all", err
		})

		s.demandsSignatures(ann.Fingerprint())
		s.forbidden("rolling out an unsigned chart", dev.TryEdit(more), "charts are signed here")
		verify := func(signer, secret string) func(app *shipper.Application) {
			return func(app *shipper.Application) {
				app.Spec.Template.Chart.Verify = shipper.ChartVerification{SecretName: secret, Signer: signer}
			}
		}
		s.forbidden("having it signed by another", dev.TryEdit(verify(bob.Fingerprint(), "mine")), "charts are signed here")
		s.refused("naming keys that are not there", s.TryEdit(verify(ann.Fingerprint(), "other")),
			"spec.template.chart.verify.secretName: Invalid value", "there is no Secret "+s.Namespace+"/other")
		dev.Edits(verify(ann.Fingerprint(), keysName))
		second := s.releaseAfter(first)
		s.complains(s.App, shipper.ChartNotVerified, "there is no provenance at "+repository.URL+"/test-nginx-0.0.1.tgz.prov")
		s.waits(second, first)
		repository.PublishProvenance("test-nginx", "0.0.1", bob.Sign(one))
		s.complains(s.App, shipper.ChartNotVerified, "is signed by the key "+bob.Fingerprint()[24:]+", which is not among the keys")
		s.waits(second, first)
		repository.PublishProvenance("test-nginx", "0.0.1", ann.Sign(one))
		s.Completes(second)
		s.toldOf("Release", second, "ChartVerified",
			`The chart of "`+s.Namespace+"/"+second+`" is signed by `+ann.Fingerprint()+" ann <ann@example.com>")
		s.readyPods(first, 0)
		s.readyPods(second, 2)

		repository.PublishProvenance("test-nginx", "0.0.2", ann.Sign(one))
		dev.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.2" })
		third := s.releaseAfter(second)
		s.complains(s.App, shipper.ChartNotVerified, "is that of test-nginx-0.0.1.tgz, not of test-nginx-0.0.2.tgz")
		s.waits(third, second)

		repository.Close()
		s.Must("taking the keys away", world.Management.Delete(s.Ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: keysName},
		}))
		dev.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: second} })
		back := s.releaseAfter(third)
		s.Completes(back)
		s.readyPods(back, 2)
		want := &shipper.ChartSignature{Digest: one.Digest, Fingerprint: ann.Fingerprint(), Identity: "ann <ann@example.com>"}
		for _, name := range []string{second, back} {
			rel, err := s.Get(name)
			s.Must("reading a release", err)
			if diff := cmp.Diff(want, rel.Signature()); diff != "" {
				t.Errorf("of %s (-want +got)\n%s", name, diff)
			}
		}
		out, err := s.shipperctl("rollout", "history", s.App, "-o", "yaml")
		s.Must("reading the history", err)
		if n := strings.Count(out, "fingerprint: "+ann.Fingerprint()); n != 2 {
			t.Errorf("the history has the signer %d times:\n%s", n, out)
		}
		s.refused("forging a signature", dev.tryAnnotate(back, shipper.ReleaseChartSignatureAnnotation, `{"fingerprint":"x"}`),
			"is written by Shipper")
	})
}

// waits fails if anything was installed for a contender, or removed from the incumbent.
func (s *fixture) waits(contender, incumbent string) {
	s.Helper()
	it := &shipper.InstallationTarget{}
	err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: contender}, it)
	if !apierrors.IsNotFound(err) {
		s.Errorf("%s is being installed: %v", contender, err)
	}
	s.readyPods(incumbent, 2)
	s.endpoints(2)
}

// tryAnnotate sets an annotation of a Release.
func (s *fixture) tryAnnotate(release, key, value string) error {
	rel, err := s.Get(release)
	s.Must("reading the release", err)
	before := rel.DeepCopy()
	metav1.SetMetaDataAnnotation(&rel.ObjectMeta, key, value)
	return s.User.Patch(s.Ctx, rel, client.MergeFrom(before))
}
