// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"testing"
	"time"
)

// TestKnownFaultsStayMended runs plans that failed once; known.md says what they found.
func TestKnownFaultsStayMended(t *testing.T) {
	for sentence, p := range map[string]Plan{
		"a conflict about a selector without another writer is tried again": {
			Story: "rollout", Webhooks: 1, Faults: map[string][]Fault{"forward": {{
				Kind: Status, Status: http.StatusConflict, Host: clusterName(0), Path: "/services/" + serviceName,
				After: 3 * time.Second, For: 10 * time.Second,
			}}},
		},
		"a process that is killed while it begins to watch leaves no queue": {
			Story: "rollout", Webhooks: 1, Faults: map[string][]Fault{"forward": {
				{Kind: Kill, Process: reconcilers}, {Kind: Kill, Process: reconcilers, After: 25 * time.Millisecond},
				{Kind: Kill, Process: reconcilers, After: 60 * time.Millisecond}, {Kind: Kill, Process: reconcilers, After: 110 * time.Millisecond},
			}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

// TestKnownSeedsKeepTheLaws runs seeds that broke a law once.
func TestKnownSeedsKeepTheLaws(t *testing.T) {
	for sentence, known := range map[string]struct {
		story string
		seed  uint64
	}{
		"a kind whose cache fills late is watched later":         {"scoped", 12},
		"what the Service still selects has traffic":             {"walk-108", 108},
		"hooks are judged by the anchor that the API server has": {"hooks", 92},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			story, _ := find(known.story)
			check(t, Draw(known.seed, story))
		})
	}
}
