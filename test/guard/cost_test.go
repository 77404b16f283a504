// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// spent are the lines in which an API server counts how long it was busy with policies, and how often.
var spent = regexp.MustCompile(`(?m)^apiserver_admission_controller_admission_duration_seconds_(sum|count)` +
	`\{name="ValidatingAdmissionPolicy",operation="UPDATE",rejected="(?:true|false)",type="validate"\} (\S+)$`)

// TestTheGuardCostsLittle has the API server say what it spends on policies when a user updates one of Shipper's Pods, and
// Pods of others, with the guard and without. The bound is for busy machines; docs/guard.md has figures of an idle one.
func TestTheGuardCostsLittle(t *testing.T) {
	env.Nightly(t, "it measures what policies cost; the other tests show that they hold")
	s := begin(t, "cost-")
	pod := &s.pods(s.rolledOut())[0]
	other := aPod(s.Namespace, theirs)
	s.Must("creating a pod of others", world.cluster.Create(s.Ctx, other))
	c := client.NewDryRunClient(world.cluster)
	measure := func(what string) {
		for name, patch := range map[string]func(context.Context, client.Client) error{
			"a label of Shipper's is refused":  patches(pod, "", `{"metadata":{"labels":{%q:"x"}}}`, shipper.ReleaseLabel),
			"a label of one's own is given":    patches(pod, "", `{"metadata":{"labels":{"team":"x"}}}`),
			"a kubelet reports":                patches(pod, "status", `{"status":{"message":"x"}}`),
			"a Pod that is not Shipper's goes": patches(other, "", `{"metadata":{"labels":{"team":"x"}}}`),
		} {
			const n = 300
			before, count := s.spent()
			for range n {
				if err := patch(s.Ctx, c); err != nil && !guarded(err) {
					t.Fatal(err)
				}
			}
			after, total := s.spent()
			mean := time.Duration(float64(after-before) / (total - count))
			t.Logf("%s, %s: %s", what, name, mean)
			if mean > 10*time.Millisecond {
				t.Errorf("%s: policies take %s when %s", what, mean, name)
			}
		}
	}
	measure("guarded")
	if out, err := shipperctl(s.Ctx, "clusters", "join", "--guard=false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.Must("waiting", holds(s.Ctx, false))
	measure("not guarded")
	if out, err := shipperctl(s.Ctx, "clusters", "join", "--guard"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.Must("waiting", holds(s.Ctx, true))
}

// spent is how long the API server was busy with policies for updates, and how many these were.
func (s *fixture) spent() (time.Duration, float64) {
	s.Helper()
	typed, err := kubernetes.NewForConfig(world.Fleet.Applications[0].Config)
	s.Must("making a client", err)
	page, err := typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.Ctx)
	s.Must("reading metrics", err)
	var seconds, count float64
	for _, m := range spent.FindAllSubmatch(page, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		s.Must("reading metrics", err)
		if string(m[1]) == "sum" {
			seconds += n
		} else {
			count += n
		}
	}
	return time.Duration(seconds * float64(time.Second)), count
}
