// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/member/survey"
	"shipper.dev/shipper/reconciler/retry"
)

// etcdRoom is what an InstallationTarget may take; etcd takes 1.5 MiB.
const etcdRoom = 1258291 // 1.2 MiB

// kinds are counts of so many kinds.
func kinds(n int) []shipper.InstalledKind {
	out := make([]shipper.InstalledKind, n)
	for i := range out {
		out[i] = shipper.InstalledKind{APIVersion: "networking.example.com/v1", Kind: fmt.Sprint("NetworkPolicy", i), Total: 1, Healthy: 1}
	}
	return out
}

// wellIn is a cluster in which all is well.
func wellIn(i int) shipper.ClusterInstallationStatus {
	return shipper.ClusterInstallationStatus{
		Name: fmt.Sprintf("europe-west-%04d", i), Status: shipper.InstallationStatusInstalled,
		Conditions: []shipper.Condition{
			{Type: shipper.TargetOperational, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: shipper.TargetReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		Objects: &shipper.InstalledObjects{Total: 20, Healthy: 20, Kinds: kinds(20)},
	}
}

// everywhere are clusters in which all goes wrong, at length.
func everywhere(n int) []shipper.ClusterInstallationStatus {
	name, long := strings.Repeat("n", 253), strings.Repeat("x", survey.MaxText)
	out := make([]shipper.ClusterInstallationStatus, n)
	for i := range out {
		c := wellIn(i)
		c.Objects.Healthy, c.Drift, c.Diff = 0, &shipper.InstalledDrift{Objects: 20, Omitted: 1}, &shipper.InstalledDrift{Objects: 20}
		for range survey.MaxUnhealthy {
			c.Objects.Unhealthy = append(c.Objects.Unhealthy, shipper.UnhealthyObject{
				APIVersion: "apps/v1", Kind: "Deployment", Name: name, Status: "Failed", Reason: long[:60], Message: long,
			})
		}
		for range drift.MaxFields {
			field := shipper.DriftedField{
				APIVersion: "apps/v1", Kind: "Deployment", Name: name, Field: long, Want: long[:128], Have: long[:128], Manager: "kubectl-edit",
				Since: &now,
			}
			c.Drift.Fields, c.Diff.Fields = append(c.Drift.Fields, field), append(c.Diff.Fields, field)
		}
		out[i] = c
	}
	return out
}

// failing are clusters in each of which a write was refused, at length.
func failing(n int) []shipper.ClusterInstallationStatus {
	out := make([]shipper.ClusterInstallationStatus, n)
	for i := range out {
		out[i] = wellIn(i)
		out[i].Status, out[i].Message = shipper.InstallationStatusFailed, strings.Repeat("x", retry.MaxBrief)
		out[i].Conditions[1].Status, out[i].Conditions[1].Reason = corev1.ConditionFalse, shipper.InProgress
		out[i].Conditions[1].Message = out[i].Message
	}
	return out
}

// stored estimates an InstallationTarget with clusters in etcd: its JSON with managedFields.
func stored(t *testing.T, clusters []shipper.ClusterInstallationStatus) int {
	t.Helper()
	it := &shipper.InstallationTarget{Status: shipper.InstallationTargetStatus{Clusters: clusters}}
	owned := map[string]any{}
	for _, c := range clusters {
		it.Spec.Clusters = append(it.Spec.Clusters, c.Name)
		owned["v:"+marshal(t, c.Name)] = map[string]any{}
	}
	text := marshal(t, it)
	var whole map[string]any
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	return len(text) + len(marshal(t, owned)) + len(marshal(t, ownedFields(t, whole["status"])))
}

// ownedFields are the managedFields of a value. Lists with a key are those of clusters and conditions; all others are atomic.
func ownedFields(t *testing.T, value any) map[string]any {
	t.Helper()
	out := map[string]any{}
	object, ok := value.(map[string]any)
	if !ok {
		return out
	}
	for field, inner := range object {
		list, _ := inner.([]any)
		key := map[string]string{"clusters": "name", "conditions": "type"}[field]
		if key == "" {
			out["f:"+field] = ownedFields(t, inner)
			continue
		}
		elements := map[string]any{".": map[string]any{}}
		for _, element := range list {
			name := element.(map[string]any)[key]
			elements["k:"+marshal(t, map[string]any{key: name})] = ownedFields(t, element)
		}
		out["f:"+field] = elements
	}
	out["."] = map[string]any{}
	return out
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheStatusOfAFleetFitsIntoOneObject(t *testing.T) {
	type counts struct{ Unhealthy, Drift, DriftOmitted, Diff, DiffOmitted, Kinds int }
	for n, want := range map[int]counts{
		1: {10, 20, 1, 20, 0, 20},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			got := bounded(everywhere(n))
			for _, c := range got {
				is := counts{
					len(c.Objects.Unhealthy), len(c.Drift.Fields), int(c.Drift.Omitted), len(c.Diff.Fields), int(c.Diff.Omitted), len(c.Objects.Kinds),
				}
				if diff := cmp.Diff(want, is); diff != "" {
					t.Fatalf("counts of %s (-want +got):\n%s", c.Name, diff)
				}
			}
			if size := stored(t, got); size > etcdRoom {
				t.Errorf("%d clusters have %d bytes", n, size)
			}
			if diff := cmp.Diff(got, bounded(slices.Clone(got))); diff != "" {
				t.Errorf("a second time it cuts more (-first +second):\n%s", diff)
			}
		})
	}
}

func TestKindsOfHealthyClustersAreLeftOutInALargeFleet(t *testing.T) {
	for n, want := range map[int]int{100: 20, 101: 0, 1000: 0} {
		clusters := make([]shipper.ClusterInstallationStatus, n)
		for i := range clusters {
			clusters[i] = wellIn(i)
		}
		got := bounded(clusters)
		if kinds := len(got[0].Objects.Kinds); kinds != want || got[0].Objects.Total != 20 {
			t.Errorf("of %d clusters, each has %d kinds, want %d", n, kinds, want)
		}
		if size := stored(t, got); size > etcdRoom {
			t.Errorf("%d clusters have %d bytes", n, size)
		}
		if each := len(marshal(t, got[0])) - len(got[0].Name); n > maxWithKinds && each > 250 {
			t.Errorf("a healthy cluster takes %d bytes beside its name", each)
		}
	}
}

// TestFewBadClustersOfManyAreToldInFull although all others take room.
func TestFewBadClustersOfManyAreToldInFull(t *testing.T) {
	clusters := everywhere(3)
	for i := 3; i < 1000; i++ {
		clusters = append(clusters, wellIn(i))
	}
	got := bounded(clusters)
	if diff := cmp.Diff(everywhere(3), got[:3]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if size := stored(t, got); size > etcdRoom {
		t.Errorf("they have %d bytes", size)
	}
}

func TestMessagesOfFailuresFitIntoOneObject(t *testing.T) {
	for n, want := range map[int]int{1: 1024, 100: 1024, 1000: 131} {
		was := failing(n)
		got := bounded(slices.Clone(was))
		if len(got[0].Message) != want || len(got[0].Conditions[1].Message) != want || len(was[0].Conditions[1].Message) != retry.MaxBrief {
			t.Errorf("of %d clusters, the messages have %d and %d bytes", n, len(got[0].Message), len(got[0].Conditions[1].Message))
		}
		if size := stored(t, got); size > etcdRoom {
			t.Errorf("%d clusters have %d bytes", n, size)
		}
	}
}

func TestWhatWasToldBeforeIsNotChanged(t *testing.T) {
	was, kept := everywhere(200), everywhere(200)
	bounded(slices.Clone(was))
	if diff := cmp.Diff(kept, was); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}
