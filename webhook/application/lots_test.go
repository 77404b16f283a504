// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// shop are objects of a chart, with a role that may do something.
func shop(t *testing.T, verb string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, text := range strings.Split(`
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4, template: {metadata: {labels: {app: web}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart}, spec: {template: {metadata: {labels: {app: cart}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: files}
spec: {strategy: {type: Recreate}, template: {metadata: {labels: {app: files}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, template: {metadata: {labels: {app: db}}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web, labels: {chart: shop-VERB}}, rules: [{verbs: [VERB]}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, labels: {chart: shop-VERB}}}`, "---") {
		raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "VERB", verb)))
		if err != nil {
			t.Fatal(err)
		}
		o := unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func TestAPlanSaysWhatBecomesOfEachWorkload(t *testing.T) {
	complete := ask.Release(ask.Application(), nil, func(r *shipper.Release) {
		r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
		r.Spec.Environment.Chart.Naming = "Application"
	})
	lots := []string{
		"plan: Deployment web, Deployment cart: side by side from step 0 (staging) on",
		"plan: Deployment files: in place at step 1 (full on): Recreate",
		"plan: StatefulSet db: in place from step 0 (staging) on, all of it at step 1 (full on)",
	}
	for sentence, tc := range map[string]struct {
		known  []client.Object
		failed error
		want   []string
	}{
		"the first Release": {want: append([]string{
			"plan: step 0 (staging): contender 2 Pods, 0 in traffic, in each cluster",
			"plan: step 1 (full on): contender 5 Pods, 5 in traffic, in each cluster",
		}, lots...)},
		"over an incumbent": {known: []client.Object{complete}, want: append(append([]string{
			"plan: step 0 (staging): contender 2 Pods, 0 in traffic, incumbent 5 Pods, 5 in traffic, in each cluster",
			"plan: step 1 (full on): contender 5 Pods, 5 in traffic, incumbent 0 Pods, 0 in traffic, in each cluster",
		}, lots...), "plan: shared by both Releases, and changed at the installation, before the first step: Role web",
			"plan: the incumbent is Release super-server-8c60a3ae-0")},
		"a chart that cannot be rendered now": {failed: errors.New("still being fetched"), want: []string{
			"plan: step 0 (staging): contender 1 % of capacity, weight 0 in traffic",
			"plan: step 1 (full on): contender 100 % of capacity, weight 100 in traffic",
			"plan: what becomes of the chart's objects is not known: still being fetched",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{found: repository.Resolution{Version: "0.0.2"}, naming: "Application", countErr: tc.failed}
			charts.objects = map[string][]unstructured.Unstructured{"0.0.1": shop(t, "get"), "0.0.2": shop(t, "list")}
			a, req, dry := &response.Response{}, ask.Create(ask.Developer, ask.Application(ask.Version("0.0.2"))), true
			req.DryRun = &dry
			if err := webhookOf(t, ask.Grant(), charts, tc.known...).Validate(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range a.Warnings() {
				if strings.HasPrefix(text, "plan: ") && !strings.HasPrefix(text, "plan: Release ") && text != "plan: 1 cluster: here" {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
