// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rules "shipper.dev/shipper/apis/rules/traffic"
)

func TestSelection(t *testing.T) {
	tests := map[string]struct {
		selector map[string]string
		want     rules.Selection
	}{
		"by label": {map[string]string{"shipper-app": "web", "shipper-traffic-status": "enabled"}, rules.Selection{ByLabel: true}},
		"by label, and more": {
			map[string]string{"name": "x", "shipper-app": "web", "shipper-traffic-status": "enabled"}, rules.Selection{},
		},
		"by Release":           {map[string]string{"shipper-app": "web", "shipper-release": "web-1"}, rules.Selection{Release: "web-1"}},
		"by Release, and more": {map[string]string{"shipper-app": "web", "shipper-release": "web-1", "x": "y"}, rules.Selection{}},
		"both": {
			map[string]string{"shipper-app": "web", "shipper-release": "web-1", "shipper-traffic-status": "enabled"}, rules.Selection{},
		},
		"all Pods":             {map[string]string{"shipper-app": "web"}, rules.Selection{}},
		"nothing":              {nil, rules.Selection{}},
		"another Application":  {map[string]string{"shipper-app": "shop", "shipper-traffic-status": "enabled"}, rules.Selection{}},
		"Pods out of traffic":  {map[string]string{"shipper-app": "web", "shipper-traffic-status": "disabled"}, rules.Selection{}},
		"something of a chart": {map[string]string{"shipper-app": "web", "app": "nginx"}, rules.Selection{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			of := Selectors{App: "web"}
			got := of.Selection(tc.selector)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := of.Selection(of.Selector(got)); got != (rules.Selection{}) && again != got {
				t.Errorf("written, it is %v", again)
			}
		})
	}
}

func TestSelectionOfOneOfSeveralServices(t *testing.T) {
	const serves, backs = "serves.shipper.booking.com/http", "backend.shipper.booking.com/http"
	of := Selectors{App: "web", Service: "http"}
	for sentence, tc := range map[string]struct {
		selector map[string]string
		want     rules.Selection
	}{
		"by its label":           {map[string]string{"shipper-app": "web", serves: "true"}, rules.Selection{ByLabel: true}},
		"by its label, and more": {map[string]string{"shipper-app": "web", serves: "true", "x": "y"}, rules.Selection{}},
		"by Release": {
			map[string]string{"shipper-app": "web", "shipper-release": "web-1", backs: "true"}, rules.Selection{Release: "web-1"},
		},
		"by Release, and more": {
			map[string]string{"shipper-app": "web", "shipper-release": "web-1", backs: "true", "x": "y"}, rules.Selection{},
		},
		"of a chart":         {map[string]string{"app": "web"}, rules.Selection{}},
		"Pods of no Service": {map[string]string{"shipper-app": "web", "shipper-release": "web-1"}, rules.Selection{}},
		"by the label of charts made for Shipper": {
			map[string]string{"shipper-app": "web", "shipper-traffic-status": "enabled"}, rules.Selection{},
		},
		"by the label of another Service": {
			map[string]string{"shipper-app": "web", "serves.shipper.booking.com/grpc": "true"}, rules.Selection{},
		},
		"those of another Service": {
			map[string]string{"shipper-app": "web", "shipper-release": "web-1", "backend.shipper.booking.com/grpc": "true"}, rules.Selection{},
		},
		"by both": {
			map[string]string{"shipper-app": "web", "shipper-release": "web-1", serves: "true"}, rules.Selection{},
		},
	} {
		got := of.Selection(tc.selector)
		if got != tc.want {
			t.Errorf("%s: got %+v", sentence, got)
		}
		if diff := cmp.Diff(tc.selector, of.Selector(got)); got != (rules.Selection{}) && diff != "" {
			t.Errorf("%s, written (-want +got):\n%s", sentence, diff)
		}
	}
}
