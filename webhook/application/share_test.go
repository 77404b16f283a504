// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// twoBackends are two Deployments with a Service each.
const twoBackends = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 40, template: {metadata: {labels: {app: web}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart}, spec: {replicas: 2, template: {metadata: {labels: {app: cart}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: mail}, spec: {template: {metadata: {labels: {app: mail}}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart}, spec: {selector: {app: cart}, ports: [{port: 80}]}}`

func TestAWriteWarnsOfTheStepThatGivesMostBeyondItsWeight(t *testing.T) {
	canary := func(replicas int64) func(*shipper.Application) {
		return func(app *shipper.Application) {
			app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": replicas}
			app.Spec.Template.Strategy.Steps = []shipper.RolloutStrategyStep{
				ask.Step("ten", 100, 10, 90, 10), ask.Step("five", 100, 5, 95, 5), ask.Step("full on", 0, 100, 0, 100),
			}
		}
	}
	var objects []unstructured.Unstructured
	for text := range strings.SplitSeq(twoBackends, "---") {
		o := unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	const remedy = "; have at least 25 replicas, or leave the contender without traffic there"
	for sentence, tc := range map[string]struct {
		app    *shipper.Application
		failed error
		naming shipper.ChartNaming
		want   []string
	}{
		"one replica": {app: ask.Application(canary(1)), want: []string{
			"step 1 (five): the contender gets 50 % of the requests, and its weight asks for 5 %: Pods take traffic whole, and with 1 replica " +
				"it has 1 of 2 in traffic" + remedy,
		}},
		"replicas that are enough":                 {app: ask.Application(canary(25))},
		"a step without traffic for the contender": {app: ask.Application()},
		"a chart that is not there yet":            {app: ask.Application(canary(1)), failed: errors.New("still being fetched")},
		"clusters with other values": {
			app: ask.Application(canary(40), func(app *shipper.Application) {
				app.Spec.Template.ClusterRequirements.Regions[0].Replicas = new(int32(2))
				app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{{Name: "there", Values: &shipper.ChartValues{"replicaCount": int64(2)}}}
			}),
			want: []string{
				"step 1 (five): the contender gets 33 % of the requests, and its weight asks for 5 %: Pods take traffic whole, and with 2 replicas " +
					"in there it has 1 of 3 in traffic" + remedy,
			},
		},
		"a Service of several": {app: ask.Application(canary(1)), naming: shipper.NamingByApplication, want: []string{
			"step 1 (five): the contender gets 33 % of the requests of Service cart, and its weight asks for 5 %: Pods take traffic whole, and " +
				"with 2 replicas it has 1 of 3 in traffic" + remedy,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{found: repository.Resolution{Version: "0.0.1"}, countErr: tc.failed, naming: tc.naming}
			charts.objects = map[string][]unstructured.Unstructured{"0.0.1": objects}
			there := &shipper.Cluster{}
			there.Name, there.Spec.Region = "there", "local"
			a := &response.Response{}
			if err := webhookOf(t, ask.Grant(), charts, there).Validate(t.Context(), ask.Create(ask.Developer, tc.app), a); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range a.Warnings() {
				if strings.HasPrefix(text, "step ") {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
