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
	cmd.SetArgs(append(args, "--kubeconfig", world.Fleet.Kubeconfig))
	err := cmd.ExecuteContext(s.Ctx)
	return out.String(), err
}

// isWell waits until doctor finds nothing broken.
func (s *fixture) isWell() {
	s.Helper()
	const want = "ok       management cluster\nok       kinds\nok       rights\nok       approvers\nok       webhooks\n" +
		"ok       certificate\nok       path of reviews\nok       second line\nok       fairness\nok       pods\nok       reconciler\n" +
		"ok       cluster " + west +
		"\nok       cluster " + east + "\nnothing is broken\n"
	s.Eventually("what doctor says", want, func() (string, error) {
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
	s.Eventually("what doctor says", "1 broken: "+what, func() (string, error) {
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
	s := &fixture{Rollout: *world.In(t, "", "")}
	s.isWell()
	c := world.Management
	mendedBy := func(mends []string) {
		t.Helper()
		if len(mends) == 0 {
			t.Fatal("doctor advises no command")
		}
		out, err := s.administers(mends...)
		s.Must("shipperctl "+strings.Join(mends, " ")+"\n"+out, err)
		s.isWell()
	}

	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = "blocks." + shipper.GroupName
	s.Must("deleting the policy", c.Delete(s.Ctx, policy))
	mendedBy(s.findsBroken("BROKEN   second line: there is no ValidatingAdmissionPolicy blocks.shipper.booking.com"))

	role := &rbacv1.ClusterRole{}
	s.Must("reading the role", c.Get(s.Ctx, client.ObjectKey{Name: "shipper:management-cluster"}, role))
	for i := range role.Rules {
		if len(role.Rules[i].Resources) > 0 && role.Rules[i].Resources[0] == "subjectaccessreviews" {
			role.Rules[i].Resources = []string{"nothing"} // used only for overrides, and no test has made one yet
		}
	}
	s.Must("taking a right away", c.Update(s.Ctx, role))
	mendedBy(s.findsBroken("may not:\n                create subjectaccessreviews.authorization.k8s.io\n"))

	webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	webhooks.Name = shipper.GroupName
	s.Must("deleting the webhooks", c.Delete(s.Ctx, webhooks))
	mends := s.findsBroken("BROKEN   webhooks: there is no MutatingWebhookConfiguration shipper.booking.com")
	out, err := s.administers(mends...)
	s.Must("shipperctl "+strings.Join(mends, " ")+"\n"+out, err)
	file := filepath.Join(world.Dir, "clusters.yaml")
	joins := []string{"clusters", "join", "-f", file} // setup leaves new webhooks at Ignore until clusters are joined
	mendedBy(joins)

	cluster := &shipper.Cluster{}
	s.Must("reading a cluster", c.Get(s.Ctx, client.ObjectKey{Name: east}, cluster))
	was := cluster.DeepCopy()
	cluster.Spec.APIMaster = "https://127.0.0.1:1"
	s.Must("losing a cluster", c.Patch(s.Ctx, cluster, client.MergeFrom(was)))
	s.findsBroken("BROKEN   cluster " + east + ": the API server at https://127.0.0.1:1 does not answer")
	mendedBy(joins)

	freeze := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "freeze"}}
	freeze.Spec.Message = "nothing moves"
	s.Must("blocking everything", c.Create(s.Ctx, freeze))
	s.isWell()
	s.Must("lifting the block", c.Delete(s.Ctx, freeze))

	s.Must("stopping the webhook", world.Pod.Webhook.Stop())
	run := &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "unseen"}}
	run.Spec.Shipyard = "shop"
	if err := c.Create(s.Ctx, run); err == nil || !strings.Contains(err.Error(), "failed calling webhook") { // scenario 31
		s.Errorf("starting a run while no webhook answers: %v", err) // the webhook is needed by other tests
	}
	s.findsBroken("BROKEN   webhooks: the API server cannot call the webhook for Application, Release, InstallationTarget, " +
		"CapacityTarget, TrafficTarget, Cluster, RolloutBlock: ")
	s.Must("starting the webhook", world.Pod.StartWebhook(s.Ctx))
	s.isWell()

	s.Must("stopping the reconciler", world.Pod.Reconciler.Stop())
	s.findsBroken("BROKEN   reconciler: no reconciler leads: nothing holds the Lease shipper-reconciler")
	s.Must("starting the reconciler", world.Pod.StartReconciler(s.Ctx))
	s.isWell()
}

// installsWhatIsRendered compares the digest of each object that shipperctl renders of a Release with that of the object in
// the cluster.
func (s *fixture) installsWhatIsRendered(release string) {
	s.Helper()
	out, err := s.administers("chart", "render", "release", release, "-n", s.Namespace, "-o", "json", charts.Flag)
	s.Must("rendering "+release+"\n"+out, err)
	var rendered []render.Rendering
	s.Must("reading what is rendered", json.Unmarshal([]byte(out), &rendered))
	var seen []string
	for _, one := range rendered {
		for _, cluster := range one.Clusters {
			for _, want := range one.Objects {
				seen = append(seen, cluster+" "+want.GetKind())
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(want.GroupVersionKind())
				err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKeyFromObject(want), live)
				s.Must("reading "+want.GetKind()+" "+want.GetName()+" in "+cluster, err)
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
