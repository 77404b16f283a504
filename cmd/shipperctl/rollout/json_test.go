// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestForPrograms holds the names that programs read.
func TestForPrograms(t *testing.T) {
	two := canary()
	two.Problems, two.Clusters = []string{"ValidHistory: no"}, two.Clusters[1:]
	two.Blocks.InEffect, two.Blocks.Unread = []string{"shop/freeze (no; ann)"}, "those of shop cannot be read"
	environment := shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: "nginx", Version: "0.0.2", RepoURL: "https://charts"}}
	for sentence, tc := range map[string]struct {
		value any
		want  string
	}{
		"status": {two, `namespace: shop
application: super-server
release: super-server-6f19aa85-1
chart: nginx 0.0.2 (~0.0)
requestedBy: ann@example.com
requestedAt: "2026-11-20T12:56:00Z"
incumbent: super-server-4f2a77c1-0
steps:
- {achieved: true, name: staging, target: false}
- {achieved: false, name: canary 50/50, target: true}
- {achieved: false, name: full on, target: false}
complete: false
waiting:
- 'release super-server-6f19aa85-1 hasn''t achieved capacity in clusters: us-east-1. for more details try ` +
			"`kubectl describe ct super-server-6f19aa85-1`" + `'
problems: ['ValidHistory: no']
clusters:
- name: us-east-1
  contender: {all: 10, ready: 3, wanted: 5, weight: 0}
  incumbent: {all: 10, ready: 10, wanted: 10, weight: 100}
  notes: [2 pods ImagePullBackOff "nginx:boom"]
blocks:
  inEffect: [shop/freeze (no; ann)]
  next: rollout-blocks-global/weekend
  nextStart: "2026-11-20T17:00:00Z"
  unread: those of shop cannot be read
`},
		"history": {
			[]Past{{
				Release: "web-1", Generation: 4, Chart: "nginx", Version: "0.0.2", Digest: "2257", ValuesChanged: []string{"image.tag"},
				Step: 1, StepName: "50/50", LastStep: 2, State: "contender", Outcome: "InProgress", RollbackOf: "web-0", RequestedBy: "ann",
				Override: "shop/freeze", OverrideReason: "fire", CreatedAt: time.Unix(1e9, 0).UTC(), Duration: "4m10s",
			}}, `- release: web-1
  generation: 4
  chart: nginx
  version: 0.0.2
  digest: "2257"
  valuesChanged: [image.tag]
  outcome: InProgress
  rollbackOf: web-0
  override: shop/freeze
  overrideReason: fire
  duration: 4m10s
  step: 1
  stepName: 50/50
  lastStep: 2
  state: contender
  requestedBy: ann
  createdAt: "2001-09-09T01:46:40Z"
`},
		"diff": {
			releaseDifference{"web-0", "web-1", environment, environment, "+a\n", []overrideChange{
				{Name: "work/edge", Mandatory: true, Before: "1234", After: "5678"}, {Name: "work/new", After: "9abc"},
			}}, `from: web-0
to: web-1
overrides: [{name: work/edge, mandatory: true, before: "1234", after: "5678"}, {name: work/new, after: 9abc}]
before: {chart: {name: nginx, repoUrl: https://charts, version: 0.0.2}, clusterRequirements: {}, values: null}
after: {chart: {name: nginx, repoUrl: https://charts, version: 0.0.2}, clusterRequirements: {}, values: null}
diff: |
  +a
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			if err := cli.YAML.Print(&out, tc.value, nil); err != nil {
				t.Fatal(err)
			}
			var want, got any
			unmarshal(t, []byte(tc.want), &want)
			unmarshal(t, out.Bytes(), &got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func unmarshal(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
}
