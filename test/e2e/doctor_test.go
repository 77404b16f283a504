// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/render"
	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/test/charts"
)

// administers runs shipperctl as the administrator.
func (s *fixture) administers(args ...string) (string, error) {
	s.Helper()
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(args, "--kubeconfig", world.fleet.Kubeconfig))
	err := cmd.ExecuteContext(s.ctx)
	return out.String(), err
}

// isWell waits until doctor finds nothing broken.
func (s *fixture) isWell() {
	s.Helper()
	const want = "ok       management cluster\nok       kinds\nok       rights\nok       webhooks\nok       certificate\n" +
		"ok       second line\nok       pods\nok       reconciler\nok       cluster " + west + "\nok       cluster " + east +
		"\nnothing is broken\n"
	s.eventually("what doctor says", want, func() (string, error) {
		out, err := s.administers("doctor")
		if err != nil {
			out += err.Error()
		}
		return out, nil
	})
}

// findsBroken waits until doctor reports what as the only fault, and returns the shipperctl command that doctor advises, if
// any.
func (s *fixture) findsBroken(what string) (mends []string) {
	s.Helper()
	s.eventually("what doctor says", "1 broken: "+what, func() (string, error) {
		out, err := s.administers("doctor")
		if err == nil || !strings.Contains(out, what) {
			return out, nil
		}
		_, do, _ := strings.Cut(out, "do:  ")
		do, _, _ = strings.Cut(do, "\n")
		if command, is := strings.CutPrefix(do, "shipperctl "); is {
			mends = strings.Fields(command)
		}
		return err.Error() + ": " + what, nil
	})
	return mends
}

// TestDoctorFindsWhatIsBrokenAndWhatItAdvisesMendsIt runs before all others: it stops components that they share.
func TestDoctorFindsWhatIsBrokenAndWhatItAdvisesMendsIt(t *testing.T) {
	s := &fixture{T: t, ctx: t.Context()}
	s.isWell()
	c := world.management
	mendedBy := func(mends []string) {
		t.Helper()
		if len(mends) == 0 {
			t.Fatal("doctor advises no command")
		}
		out, err := s.administers(mends...)
		s.must("shipperctl "+strings.Join(mends, " ")+"\n"+out, err)
		s.isWell()
	}

	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = "blocks." + shipper.GroupName
	s.must("deleting the policy", c.Delete(s.ctx, policy))
	mendedBy(s.findsBroken("BROKEN   second line: there is no ValidatingAdmissionPolicy blocks.shipper.booking.com"))

	role := &rbacv1.ClusterRole{}
	s.must("reading the role", c.Get(s.ctx, client.ObjectKey{Name: "shipper:management-cluster"}, role))
	for i := range role.Rules {
		if len(role.Rules[i].Resources) > 0 && role.Rules[i].Resources[0] == "subjectaccessreviews" {
			role.Rules[i].Resources = []string{"nothing"} // used only for overrides, and no test has made one yet
		}
	}
	s.must("taking a right away", c.Update(s.ctx, role))
	mendedBy(s.findsBroken("may not:\n                create subjectaccessreviews.authorization.k8s.io\n"))

	webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	webhooks.Name = shipper.GroupName
	s.must("deleting the webhooks", c.Delete(s.ctx, webhooks))
	mends := s.findsBroken("BROKEN   webhooks: there is no MutatingWebhookConfiguration shipper.booking.com")
	out, err := s.administers(mends...)
	s.must("shipperctl "+strings.Join(mends, " ")+"\n"+out, err)
	file := filepath.Join(world.options.Dir, "clusters.yaml")
	joins := []string{"clusters", "join", "-f", file} // setup leaves new webhooks at Ignore until clusters are joined
	mendedBy(joins)

	cluster := &shipper.Cluster{}
	s.must("reading a cluster", c.Get(s.ctx, client.ObjectKey{Name: east}, cluster))
	was := cluster.DeepCopy()
	cluster.Spec.APIMaster = "https://127.0.0.1:1"
	s.must("losing a cluster", c.Patch(s.ctx, cluster, client.MergeFrom(was)))
	s.findsBroken("BROKEN   cluster " + east + ": the API server at https://127.0.0.1:1 does not answer")
	mendedBy(joins)

	freeze := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "freeze"}}
	freeze.Spec.Message = "nothing moves"
	s.must("blocking everything", c.Create(s.ctx, freeze))
	s.isWell()
	s.must("lifting the block", c.Delete(s.ctx, freeze))

	s.must("stopping the webhook", world.pod.Webhook.Stop())
	s.findsBroken("BROKEN   webhooks: the API server cannot call the webhook for Application, Release, InstallationTarget, " +
		"CapacityTarget, TrafficTarget, Cluster, RolloutBlock: ")
	s.must("starting the webhook", world.pod.StartWebhook(s.ctx))
	s.isWell()

	s.must("stopping the reconciler", world.pod.Reconciler.Stop())
	s.findsBroken("BROKEN   reconciler: no reconciler leads: nothing holds the Lease shipper-reconciler")
	s.must("starting the reconciler", world.pod.StartReconciler(s.ctx))
	s.isWell()
}

// installsWhatIsRendered compares the digest of each object that shipperctl renders of a Release with that of the object in
// the cluster.
func (s *fixture) installsWhatIsRendered(release string) {
	s.Helper()
	out, err := s.administers("chart", "render", "release", release, "-n", s.namespace, "-o", "json", charts.Flag)
	s.must("rendering "+release+"\n"+out, err)
	var rendered []render.Rendering
	s.must("reading what is rendered", json.Unmarshal([]byte(out), &rendered))
	var seen []string
	for _, one := range rendered {
		for _, cluster := range one.Clusters {
			for _, want := range one.Objects {
				seen = append(seen, cluster+" "+want.GetKind())
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(want.GroupVersionKind())
				err := world.clusters[cluster].Get(s.ctx, client.ObjectKeyFromObject(want), live)
				s.must("reading "+want.GetKind()+" "+want.GetName()+" in "+cluster, err)
				digest := live.GetAnnotations()[shipper.InstalledDigestAnnotation]
				if digest == "" || digest != want.GetAnnotations()[shipper.InstalledDigestAnnotation] {
					s.Errorf("%s %s in %s is not what was rendered: %s", want.GetKind(), want.GetName(), cluster, digest)
				}
			}
		}
	}
	slices.Sort(seen)
	if want := []string{west + " Deployment", west + " Service", east + " Deployment", east + " Service"}; !slices.Equal(seen, want) {
		s.Errorf("rendered are %v, want %v", seen, want)
	}
}
