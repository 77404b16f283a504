// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestForPrograms holds the names that programs read.
func TestForPrograms(t *testing.T) {
	later, past := metav1.NewTime(now.Add(4*time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	blocks := []shipper.RolloutBlock{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "to-come", CreationTimestamp: past}, Spec: shipper.RolloutBlockSpec{
			Message: "why", Author: shipper.RolloutBlockAuthor{Name: "ann"}, Schedule: &shipper.RolloutBlockSchedule{Start: &later},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: "now", CreationTimestamp: past}, Spec: shipper.RolloutBlockSpec{
			Message: "hot", Enforcement: shipper.RolloutBlockWarn, TTL: &metav1.Duration{Duration: 2 * time.Hour},
		}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: "odd", CreationTimestamp: past}, Spec: shipper.RolloutBlockSpec{
			Schedule: &shipper.RolloutBlockSchedule{
				Windows: []shipper.RolloutBlockWindow{{Cron: "often", Duration: metav1.Duration{Duration: time.Hour}}},
			},
		}},
	}
	const want = `- active: true
  enforcement: Warn
  message: hot
  name: now
  namespace: z
  stops: only warns of everything
  until: "2026-11-20T14:00:00Z"
- active: true
  enforcement: Deny
  message: ""
  name: odd
  namespace: z
  problem: PROBLEM
  stops: everything
- active: false
  author: ann
  enforcement: Deny
  from: "2026-11-20T17:00:00Z"
  message: why
  name: to-come
  namespace: a
  stops: everything
`
	found := listed(blocks, now)
	if found[1].Problem == "" {
		t.Error("a schedule that cannot be read is not reported")
	}
	found[1].Problem = "PROBLEM"
	var out bytes.Buffer
	if err := cli.YAML.Print(&out, found, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
