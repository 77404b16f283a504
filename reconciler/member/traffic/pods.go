// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// parallelPods is how many Pods of one cluster are labelled at the same time.
const parallelPods = 10

// podPatch is what is written to one Pod. The order of its fields is that of the bytes that are sent.
type podPatch struct {
	name     string
	Metadata struct {
		Labels      map[string]*string `json:"labels"`
		Annotations map[string]*string `json:"annotations"`
	} `json:"metadata"`
}

// inTraffic is the cost of deletion of a Pod in traffic; others have none, which is 0.
const inTraffic = "1"

// misplaced returns Pods whose deletion cost would let Kubernetes remove a Pod in traffic before one without: another Shipper has labelled
// them, or their chart writes costs. Where labels have no effect, it returns none.
func (s observation) misplaced(b backend, plan rules.Plan, release string) (last, first []string) {
	i := slices.IndexFunc(b.app.Releases, func(r rules.Release) bool { return r.Name == release && !r.AsFound })
	if i < 0 || b.service == nil || b.left || b.app.Selects.Release != "" {
		return nil, nil
	}
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64) // of those in traffic, and out of it
	for _, pod := range b.app.Releases[i].Pods {
		cost := s.cost(pod.Name)
		switch in, out := slices.Contains(plan.Enable, pod.Name), slices.Contains(plan.Disable, pod.Name); {
		case pod.Gone, in:
		case out:
			highest = max(highest, 0)
		case pod.Labelled:
			if lowest = min(lowest, cost); s.costs[pod.Name] != inTraffic {
				last = append(last, pod.Name)
			}
		case s.serves[pod.Name].Len() == 0: // of no other Service
			if highest = max(highest, cost); cost > 0 {
				first = append(first, pod.Name)
			}
		}
	}
	if lowest > highest {
		return nil, nil
	}
	return last, first
}

// cost is the cost of deletion of a Pod, as Kubernetes reads it.
func (s observation) cost(pod string) int64 {
	n, err := strconv.ParseInt(s.costs[pod], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// patches are the labels that let Pods into the traffic of Services or take them out, one patch for each Pod. A Pod in traffic goes last
// when its Deployment is scaled down: otherwise Kubernetes takes any, and what is served shrinks until others are let in.
func (s observation) patches(plans []Outcome, pods func(Outcome) []string, in bool) []*podPatch {
	var out []*podPatch
	byName := map[string]*podPatch{}
	for _, of := range plans {
		for _, name := range pods(of) {
			patch := byName[name]
			if patch == nil {
				patch = &podPatch{name: name}
				patch.Metadata.Labels = map[string]*string{}
				byName[name] = patch
				out = append(out, patch)
			}
			key, value := of.selectors.label()
			patch.Metadata.Labels[key] = labelled(of.selectors, value, in)
			if serves := s.serves[name]; serves != nil { // nil where objects are named by Release
				serves.Delete(key)
				if in {
					serves.Insert(key)
				}
			}
		}
	}
	for _, patch := range out {
		var cost *string // no annotation: 0
		if last := inTraffic; in || s.serves[patch.name].Len() > 0 {
			cost = &last
		}
		patch.Metadata.Annotations = map[string]*string{corev1.PodDeletionCost: cost}
	}
	return out
}

// labelled is the value of the label of a Service, nil for none.
func labelled(of Selectors, value string, in bool) *string {
	switch {
	case in:
		return &value
	case of.Service != "":
		return nil
	default:
		out := shipper.TrafficDisabled
		return &out
	}
}

// label writes patches of Pods. Pods that went meanwhile need none.
func label(ctx context.Context, m *fleet.Member, namespace string, patches []*podPatch) error {
	met := make([]error, len(patches))
	var all errgroup.Group
	all.SetLimit(parallelPods)
	for i, patch := range patches {
		all.Go(func() error {
			met[i] = labelPod(ctx, m, namespace, patch)
			return nil
		})
	}
	_ = all.Wait()
	return errors.Join(met...)
}

// labelPod writes the patch of one Pod.
func labelPod(ctx context.Context, m *fleet.Member, namespace string, patch *podPatch) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("labelling Pod %s: %w", patch.name, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: patch.name}}
	err = m.Consistent().Patch(ctx, pod, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(shipper.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling Pod %s: %w", patch.name, err)
	}
	return m.WaitForCache(ctx, pod) // the next pass would label it again
}
