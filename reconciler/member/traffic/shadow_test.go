// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	rules "shipper.dev/shipper/apis/rules/traffic"
)

func TestSelection(t *testing.T) {
	tests := map[string]struct {
		selector map[string]string
		want     rules.Selection
	}{
		"by label": {map[string]string{"shipper-app": "web", "shipper-traffic-status": "enabled"}, rules.Selection{ByLabel: true}},
		"as the original": {
			map[string]string{"name": "x", "shipper-app": "web", "shipper-traffic-status": "enabled"}, rules.Selection{ByLabel: true},
		},
		"corked":               {map[string]string{"shipper-app": "web", "shipper-release": "web-1"}, rules.Selection{Release: "web-1"}},
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
			got := Selection("web", tc.selector)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := Selection("web", Selector("web", got)); got != (rules.Selection{}) && again != got {
				t.Errorf("written, it is %v", again)
			}
		})
	}
}

func TestAProofIsOfOneServiceAlone(t *testing.T) {
	long := strings.Repeat("a", 63)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: long, Namespace: "ns", UID: "1", Labels: map[string]string{"shipper-app": "web"},
	}}
	proof := shadowOf(service, nil)
	if problems := validation.IsDNS1035Label(proof.Name); !isShadow(proof, service) || problems != nil {
		t.Errorf("%s proves nothing of %s: %v", proof.Name, long, problems)
	}
	if got := shadowName(long[:62] + "b"); got == proof.Name {
		t.Errorf("%s is the name for two Services that differ in the end of theirs", got)
	}
	if got := shadowName(long[:49]); got != long[:49]+"-shipper-proof" {
		t.Errorf("%s is the name for one that has room", got)
	}
	again := service.DeepCopy()
	again.UID = "2"
	if isShadow(proof, again) {
		t.Error("it proves something of a Service that came later by the same name")
	}
	of := func(uid types.UID) discoveryv1.EndpointSlice {
		yes := true
		return discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name: string(uid), OwnerReferences: []metav1.OwnerReference{{UID: uid, Controller: &yes}},
		}}
	}
	proof.UID = "7"
	got := ownedBy([]discoveryv1.EndpointSlice{of("6"), of("7")}, proof)
	if diff := cmp.Diff([]discoveryv1.EndpointSlice{of("7")}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
