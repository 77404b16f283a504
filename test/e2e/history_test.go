// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/rollout"
)

// TestHistoryTellsWhatEachReleaseWas rolls a change of values out over a block, rolls back, and reads the history.
func TestHistoryTellsWhatEachReleaseWas(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.application("0.0.1", 1, allIn))
		first := s.Release(0)
		s.Completes(first)
		block := s.blocks()
		s.Edits(func(app *shipper.Application) {
			app.Annotations[shipper.RolloutBlockOverrideAnnotation] = block
			app.Annotations[shipper.RolloutBlockOverrideReasonAnnotation] = "it is burning"
			(*app.Spec.Template.Values)["secrets"] = map[string]any{"pass.word": "hunter2"}
			(*app.Spec.Template.Values)["replicaCount"] = int64(2)
		})
		second := s.Release(1)
		s.Completes(second)
		s.tellsHistory(
			rollout.Past{
				Release: second, Generation: 1, ValuesChanged: []string{"replicaCount", "secrets"}, State: "complete", Outcome: "Complete",
				Override: block, OverrideReason: "it is burning",
			},
			rollout.Past{Release: first, State: "incumbent", Outcome: "Complete"},
		)
		s.kubectlSays("it is burning", "get", "rel", second, "-o", "wide")
		s.kubectlSays("replicaCount, secrets", "get", "rel", second, "-o", "wide")

		s.lifts(block)
		s.says("rolls out", "rollout", "rollback", s.App)
		third := s.releaseAfter(second)
		s.Completes(third)
		s.Eventually("the outcomes that kubectl shows", "Complete RolledBack Complete", func() (string, error) {
			var out []string
			for _, name := range []string{first, second, third} {
				rel, err := s.Get(name)
				if err != nil || rel.Status.Summary == nil {
					return "nothing of " + name, err
				}
				if _, err := time.ParseDuration(rel.Status.Summary.Duration); err != nil {
					return "no duration of " + name, err
				}
				out = append(out, string(rel.Status.Summary.Outcome))
			}
			return strings.Join(out, " "), nil
		})
		s.says("it is burning", "rollout", "history", s.App) // also after the block is deleted
		s.says("complete, back to "+first, "rollout", "history", s.App)
		s.says("incumbent, rolled back", "rollout", "history", s.App)
		if out, err := s.shipperctl("rollout", "history", s.App, "-o", "yaml"); err != nil || strings.Contains(out, "hunter2") {
			t.Errorf("history: %v\n%s", err, out)
		}
	})
}

// tellsHistory compares the JSON of `rollout history`, without times and the fields that all Releases here share.
func (s *fixture) tellsHistory(want ...rollout.Past) {
	s.Helper()
	out, err := s.shipperctl("rollout", "history", s.App, "-o", "json")
	s.Must("reading the history", err)
	var got []rollout.Past
	s.Must("reading the history", json.Unmarshal([]byte(out), &got))
	for i := range got {
		if _, err := time.ParseDuration(got[i].Duration); err != nil || len(got[i].Digest) != 64 || got[i].RequestedBy == "" {
			s.Errorf("%s has the duration %q, the digest %q and the requester %q",
				got[i].Release, got[i].Duration, got[i].Digest, got[i].RequestedBy)
		}
	}
	rest := cmpopts.IgnoreFields(rollout.Past{}, "Chart", "Version", "Digest", "StepName", "RequestedBy", "CreatedAt", "Duration")
	if diff := cmp.Diff(want, got, rest); diff != "" {
		s.Errorf("history (-want +got):\n%s", diff)
	}
}
