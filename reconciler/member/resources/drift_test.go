// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var deployment = appsv1.SchemeGroupVersion.WithKind("Deployment")

// scale sets the replicas of a Deployment as an autoscaler does.
func (f *fixture) scale(key string, replicas int64) {
	f.Helper()
	u := f.get(deployment, key)
	u.Object["spec"].(map[string]any)["replicas"] = replicas
	f.must(f.member.admin.Update(f.Context(), u, client.FieldOwner(autoscaler)))
}

func TestACorrectionLeavesWhatAnAutoscalerWrote(t *testing.T) {
	for _, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyClientSide} {
		f := begin(t)
		f.policy = shipper.DriftCorrect
		f.member.mapper.Add(deployment, meta.RESTScopeNamespace)
		f.snapshot("one", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: web}, spec: {replicas: 2, paused: true,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {containers: [{name: app, image: nginx, resources: {}}]}}}}`)
		it := f.applied(0, "one", shipper.Apply{Type: how})
		f.placed(it)
		f.scale("work/web", 7)
		f.edit(deployment, "work/web", func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["paused"] = false
			u.SetGeneration(u.GetGeneration() + 1) // the fake client does not count it
		})
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
		out, writes := f.place(it)
		same(t, string(how)+": error, writes and events", []any{nil, 1, 1}, []any{out.Err, len(writes), len(out.Events)})
		spec := f.get(deployment, "work/web").Object["spec"].(map[string]any)
		same(t, string(how)+": paused and replicas", []any{true, int64(7)}, []any{spec["paused"], spec["replicas"]})
	}
}
