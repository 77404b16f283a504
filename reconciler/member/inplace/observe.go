// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/inplace"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// facts are what has to be known of a stored StatefulSet besides its digest and its replicas.
type facts struct {
	partition int32
	// onDelete is true if users replace its Pods, by deleting them.
	onDelete bool
}

// set is what a chart says of a StatefulSet of so many replicas; nil if it is not updated by partition.
func (f facts) set(replicas int32) *rules.Set {
	if f.onDelete {
		return nil
	}
	return &rules.Set{Replicas: replicas, Partition: f.partition}
}

// factsOf reads what a StatefulSet says.
func factsOf(o *unstructured.Unstructured) (out facts) {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type") // the API server checks types
	partition, _, _ := unstructured.NestedInt64(o.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
	return facts{partition: int32(partition), onDelete: strategy == string(appsv1.OnDeleteStatefulSetStrategyType)}
}

// factsOf are those of a stored StatefulSet, read once in the life of the process.
func (p *pass) factsOf(ctx context.Context, s side) (facts, error) {
	if known, ok := p.facts.Get(s.item.Digest); ok {
		return known, nil
	}
	stored, err := s.rendered.Find(ctx, p.member, s.target, *s.item)
	if err != nil {
		return facts{}, err
	}
	out := factsOf(stored.Object)
	p.facts.Put(s.item.Digest, out, 1)
	return out, nil
}

// look reads a workload, from caches or from the API server itself. The latter is of any owner.
func look(ctx context.Context, from client.Reader, kind string, key types.NamespacedName) (client.Object, error) {
	var o client.Object
	switch kind {
	case statefulSet:
		o = &appsv1.StatefulSet{}
	case daemonSet:
		o = &appsv1.DaemonSet{}
	case deployment:
		o = &appsv1.Deployment{}
	default:
		return nil, &problem{shipper.ChartError, retry.Wait, fmt.Sprintf("%s is no kind of a workload in place", kind)}
	}
	err := from.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, key.Name, err)
	}
	return o, nil
}

// liveOf is what a workload says, nil for none.
func liveOf(o client.Object) live {
	if o == nil {
		return live{}
	}
	owner := o.GetLabels()[shipper.OwnedByLabel]
	if o.GetLabels()[shipper.AppLabel] == "" { // it is not ours
		owner = ""
	}
	out := live{
		there: true, owner: owner, digest: o.GetAnnotations()[shipper.InstalledDigestAnnotation],
		base: o.GetAnnotations()[shipper.BaseAnnotation], replicas: 1,
	}
	switch w := o.(type) {
	case *appsv1.StatefulSet:
		if w.Spec.Replicas != nil {
			out.replicas = *w.Spec.Replicas
		}
		if r := w.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
			out.partition = *r.Partition
		}
		out.observed = w.Status.ObservedGeneration >= w.Generation
		out.total, out.updated, out.available = w.Status.Replicas, w.Status.UpdatedReplicas, w.Status.AvailableReplicas
		out.one = w.Status.UpdateRevision == w.Status.CurrentRevision
	case *appsv1.DaemonSet:
		out.replicas, out.observed = w.Status.DesiredNumberScheduled, w.Status.ObservedGeneration >= w.Generation
		out.total = w.Status.CurrentNumberScheduled
		out.updated, out.available = w.Status.UpdatedNumberScheduled, w.Status.NumberAvailable
	case *appsv1.Deployment:
		if w.Spec.Replicas != nil {
			out.replicas = *w.Spec.Replicas
		}
		out.observed = w.Status.ObservedGeneration >= w.Generation
		out.total, out.updated, out.available = w.Status.Replicas, w.Status.UpdatedReplicas, w.Status.AvailableReplicas
		for _, c := range w.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
				out.stuck = report.Shorten(c.Message, retry.MaxBrief)
			}
		}
		if w.Spec.Paused && (out.updated < out.replicas || out.total < out.replicas) {
			out.stuck = Paused(w)
		}
	}
	return out
}

// Paused says what a paused Deployment lacks, and what to do: its controller makes no new ReplicaSet.
func Paused(d *appsv1.Deployment) string {
	return fmt.Sprintf("the Deployment is paused, so Kubernetes creates no Pods of it: kubectl -n %s rollout resume deployment %s, in this "+
		"cluster; and leave spec.paused out of the chart, if it has it", d.Namespace, d.Name)
}
