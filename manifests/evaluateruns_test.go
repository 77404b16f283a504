// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// runOf is a run of stage staging with a status.
func runOf(status map[string]any, labels map[string]string) *unstructured.Unstructured {
	all := map[string]string{"shipper.booking.com/shipyard": "shop", "shipper.booking.com/stage": "staging"}
	maps.Copy(all, labels)
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"shipyard": "shop", "stage": "staging", "service": "web"}, "status": status,
	}}
	o.SetName("fail")
	o.SetNamespace("work")
	o.SetLabels(all)
	return o
}

// TestThePolicyKeepsTheRunsThatEndPasses evaluates sequenceruns.shipper.booking.com: without a failed run, its version would have passed.
func TestThePolicyKeepsTheRunsThatEndPasses(t *testing.T) {
	policy := policyOf(t, "sequenceruns.shipper.booking.com")
	mayNot := []string{`user "dev" may not delete run fail in stage staging of shipyard shop: by it a version loses what it passed there; ` +
		"the verb promote or override on shipyards/staging or shipyards of shipper.booking.com, name shop, in namespace work is needed"}
	ended := func(result, task, release string) map[string]any {
		return map[string]any{
			"startTime": "2026-03-01T12:00:00Z", "result": result, "tasks": []any{map[string]any{"name": task, "release": release}},
		}
	}
	for sentence, tc := range map[string]struct {
		status map[string]any
		user   string // absent: dev
		rights granted
		want   []string
	}{
		"it failed":              {status: ended("fail", "deployment", "work/web-1"), want: mayNot},
		"it took a Release back": {status: ended("pass", "rollback", "work/web-1"), want: mayNot},
		"it is under way":        {status: map[string]any{"startTime": "2026-03-01T12:00:00Z"}, want: mayNot},
		"it passed":              {status: ended("pass", "deployment", "work/web-1")},
		"it has a warning":       {status: ended("warning", "deployment", "work/web-1")},
		"it took nothing back":   {status: ended("pass", "rollback", "")},
		"it never began":         {status: map[string]any{"result": "fail"}},
		"it is not resolved":     {},
		"by a user with promote": {
			status: ended("fail", "test", ""), rights: granted{"promote shipyards.shipper.booking.com work/shop"},
		},
		"by a user with override": {
			status: ended("fail", "test", ""), rights: granted{"override shipyards.shipper.booking.com work/shop"},
		},
		"by a user with promote elsewhere": {
			status: ended("fail", "test", ""), rights: granted{"promote shipyards.shipper.booking.com work/s"}, want: mayNot,
		},
		"by the garbage collector": {status: ended("fail", "test", ""), user: "system:serviceaccount:kube-system:generic-garbage-collector"},
		"by Shipper":               {status: ended("fail", "test", ""), user: "system:serviceaccount:shipper-system:shipper-mgmt-cluster"},
	} {
		t.Run(sentence, func(t *testing.T) {
			user := tc.user
			if user == "" {
				user = "dev"
			}
			if diff := cmp.Diff(tc.want, refusalsTo(t, user, policy, "sequenceruns", runOf(tc.status, nil), nil, tc.rights)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// TestThePolicyKeepsTheLabelsOfRuns evaluates sequenceruns.shipper.booking.com: the webhook finds by them what a version has passed.
func TestThePolicyKeepsTheLabelsOfRuns(t *testing.T) {
	policy := policyOf(t, "sequenceruns.shipper.booking.com")
	byShipper := []string{"the labels shipper.booking.com/shipyard, stage, sequence and service of a run are written by Shipper: leave them " +
		"as they are (the verb stamp on sequenceruns.shipper.booking.com is needed)"}
	unlabelled := runOf(nil, nil)
	unlabelled.SetLabels(nil)
	for sentence, tc := range map[string]struct {
		after  *unstructured.Unstructured
		rights granted
		want   []string
	}{
		"a label is changed":       {after: runOf(nil, map[string]string{"shipper.booking.com/stage": "x"}), want: byShipper},
		"a label is added":         {after: runOf(nil, map[string]string{"shipper.booking.com/service": "web"}), want: byShipper},
		"all are removed":          {after: unlabelled, want: byShipper},
		"by a user who may stamp":  {after: unlabelled, rights: granted{"stamp sequenceruns.shipper.booking.com work/fail"}},
		"a label of a user's":      {after: runOf(nil, map[string]string{"team": "a"})},
		"nothing of it is changed": {after: runOf(nil, nil)},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, refusalsOf(t, policy, "sequenceruns", runOf(nil, nil), tc.after, tc.rights)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
