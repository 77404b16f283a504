// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// owned are objects that controllers made, or that others own, with what they belong to.
var owned = map[string]struct{ object, with, belongs string }{
	"the ReplicaSet of a Deployment": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: work, name: a,
  annotations: {shipper.booking.com/owner: team/web, shipper.booking.com/installed-digest: d}, labels: {shipper-app: web}, ownerReferences:
  [{apiVersion: apps/v1, kind: Deployment, name: a, uid: u, controller: true}]}, spec: {replicas: 3, selector: {matchLabels: {a: b}}}}`, "",
		`Deployment "a"`},
	"what is owned and not controlled": {`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a, ownerReferences:
  [{apiVersion: v1, kind: ConfigMap, name: web-1-anchor, uid: u}]}}`, "", `ConfigMap "web-1-anchor"`},
	"the claim of a StatefulSet": {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: work, name: data-a-10}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: work, name: a}, spec:
  {volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]}}`, `StatefulSet "a"`},
	"the Endpoints of a Service": {`{apiVersion: v1, kind: Endpoints, metadata: {namespace: work, name: a}}`,
		`{apiVersion: v1, kind: Service, metadata: {namespace: work, name: a}, spec: {selector: {a: b}}}`, `Service "a"`},
}

func TestWhatBelongsToAnotherObjectIsNeitherTakenNorRemoved(t *testing.T) {
	for sentence, tc := range owned {
		for _, policy := range []shipper.TakeOverPolicy{shipper.TakeOverAlways, shipper.TakeOverIfNoDiff} {
			t.Run(fmt.Sprint(sentence, ", ", policy), func(t *testing.T) {
				f := begin(t)
				f.put(tc.object)
				if tc.with != "" {
					f.put(tc.with)
				}
				object := f.parsed(tc.object)
				object.SetOwnerReferences(nil)
				object.SetAnnotations(map[string]string{"taken": "yes"})
				f.contents["one"] = []unstructured.Unstructured{*object}
				it := f.applied(0, "one", shipper.Apply{TakeOver: policy})
				out, writes := f.place(it)
				same(t, "reason", shipper.ObjectConflict, reasonOf(out.Err))
				if out.Err != nil && !strings.Contains(out.Err.Error(), "belongs to "+tc.belongs+" in the cluster") {
					t.Errorf("message: %s", out.Err)
				}
				for _, write := range writes {
					if !strings.HasSuffix(write, theAnchor) {
						t.Errorf("write: %s", write)
					}
				}
				f.drop(it)
				f.remove(it)
				if f.get(object.GroupVersionKind(), "work/"+object.GetName()) == nil {
					t.Error("it was removed")
				}
			})
		}
	}
}

func TestAClaimThatAStatefulSetUsesOutlastsItsPlacement(t *testing.T) {
	tc := owned["the claim of a StatefulSet"]
	f := begin(t)
	f.snapshot("one", tc.object)
	it := f.release(0, "one")
	f.placed(it)
	f.put(tc.with)
	f.drop(it)
	f.remove(it)
	if claim := f.parsed(tc.object); f.get(claim.GroupVersionKind(), "work/data-a-10") == nil {
		t.Error("it was removed")
	}
}
