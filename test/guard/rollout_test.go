// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAWholeRolloutPasses goes through two releases, forward, back, forward again, and an abort, with the guard on from the
// start. Shipper, Kubernetes' controllers, scheduler and kubelets do all they do, and nothing of it is refused.
func TestAWholeRolloutPasses(t *testing.T) {
	s := begin(t, "rollout-")
	before := s.refusals()
	incumbent := s.rolledOut()
	s.applies("0.0.2")
	contender := s.Release(1)
	for _, at := range []struct {
		step                 int32
		contender, incumbent int
	}{{0, 1, 4}, {1, 2, 2}, {0, 1, 4}, {2, 4, 0}} {
		s.goesTo(contender, at.step)
		s.has(contender, at.contender)
		s.has(incumbent, at.incumbent)
		s.serves(4)
	}
	s.Must("deleting the contender", world.Management.Delete(s.Ctx,
		&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: contender}}))
	s.has(contender, 0)
	s.has(incumbent, 4)
	s.serves(4)
	if diff := cmp.Diff(before, s.refusals()); diff != "" {
		t.Errorf("the guard has refused something (-before +after)\n%s", diff)
	}
}

// TestWhatIsNotGuardedHappens restarts a Deployment by hand, deletes a Pod, and in the end the whole namespace: Kubernetes'
// controllers make new ReplicaSets and Pods, and remove them.
func TestWhatIsNotGuardedHappens(t *testing.T) {
	s := begin(t, "unguarded-")
	release := s.rolledOut()
	before := s.refusals()
	gone := map[types.UID]bool{}
	for _, p := range s.pods(release) {
		gone[p.UID] = true
	}
	restart := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"now"}}}}}`))
	s.Must("restarting", world.cluster.Patch(s.Ctx, s.deployment(release), restart))
	s.Eventually("Pods from before the restart", "0", func() (string, error) {
		n := 0
		for _, p := range s.pods(release) {
			if gone[p.UID] {
				n++
			}
		}
		return fmt.Sprint(n), nil
	})
	s.has(release, 4)
	s.serves(4)
	s.Must("deleting a Pod", world.cluster.Delete(s.Ctx, &s.pods(release)[0]))
	s.has(release, 4)
	s.serves(4)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.Must("deleting the namespace", world.cluster.Delete(s.Ctx, ns))
	s.Eventually("the namespace", "gone", func() (string, error) {
		err := world.cluster.Get(s.Ctx, client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return "gone", nil
		}
		return "there", err
	})
	if diff := cmp.Diff(before, s.refusals()); diff != "" {
		t.Errorf("the guard has refused something (-before +after)\n%s", diff)
	}
}

// TestBreakingTheGlassIsRecorded scales by hand as a member of the group, which Shipper then puts right.
func TestBreakingTheGlassIsRecorded(t *testing.T) {
	s := begin(t, "glass-")
	release := s.rolledOut()
	d := s.deployment(release)
	c := as(t, "oncall", "system:masters", "shipper:break-glass")
	s.Must("scaling", scales(d, 5)(s.Ctx, c))
	s.Must("annotating", patches(d, "", `{"metadata":{"annotations":{"note":"x"}}}`)(s.Ctx, c))
	s.has(release, 4)
	want := []string{"update scale: oncall: Deployment " + d.Name + " is Shipper's (Application web, Release " + release +
		"): only Shipper may change its replicas.", "patch : "}
	if diff := cmp.Diff(want, s.recorded("oncall")); diff != "" {
		t.Errorf("the audit log (-want +got)\n%s", diff)
	}
}

// recorded lists a user's writes, each with what the guard has noted.
func (s *fixture) recorded(user string) []string {
	s.Helper()
	file, err := os.Open(world.Fleet.Applications[0].AuditLog)
	s.Must("opening the audit log", err)
	defer file.Close()
	var out []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		s.Must("reading the audit log", json.Unmarshal(lines.Bytes(), &event))
		if event.ImpersonatedUser == nil || event.ImpersonatedUser.Username != user || event.Verb == "get" {
			continue
		}
		note := event.Annotations["scale.guard.shipper.booking.com/break-glass"] +
			event.Annotations["deployments.guard.shipper.booking.com/break-glass"]
		out = append(out, event.Verb+" "+event.ObjectRef.Subresource+": "+note)
	}
	s.Must("reading the audit log", lines.Err())
	return out
}

// denials are the lines in which an API server counts what policies have refused.
var denials = regexp.MustCompile(
	`(?m)^apiserver_validating_admission_policy_check_total\{.*enforcement_action="deny".*policy="([a-z.]+)".*\} (\d+)$`)

// refusals are how often each policy has refused something. Some have before the tests begin.
func (s *fixture) refusals() map[string]string {
	s.Helper()
	typed, err := kubernetes.NewForConfig(world.Fleet.Applications[0].Config)
	s.Must("making a client", err)
	page, err := typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	s.Must("reading metrics", err)
	out := map[string]string{}
	for _, m := range denials.FindAllSubmatch(page, -1) {
		out[string(m[1])] += string(m[2]) + " "
	}
	if len(out) == 0 {
		s.Fatal("no refusal is counted, although there have been some")
	}
	return out
}
