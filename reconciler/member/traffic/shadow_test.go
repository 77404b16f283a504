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
)

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
