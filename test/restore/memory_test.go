// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// memory is the content of an object, without its UID.
type memory struct {
	Labels, Annotations map[string]string
	Spec, Status        any
}

// memories returns the memory of every object of Shipper's kinds in the namespaces of the test and `default`.
func (s *fixture) memories() map[string]memory {
	out := map[string]memory{}
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{},
		&shipper.TrafficTargetList{}, &shipper.RolloutBlockList{},
	} {
		s.Must("listing what there is", s.management.Management.List(s.Ctx, list))
		s.Must("reading what there is", meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err != nil || m.GetNamespace() != s.Namespace && m.GetNamespace() != "default" {
				return err
			}
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if status, ok := fields["status"].(map[string]any); ok {
				delete(status, "observedGeneration") // generations differ after a restore
			}
			delete(m.GetAnnotations(), shipper.RolloutBlockCreatedByAnnotation) // the restorer
			out[fmt.Sprintf("%T %s", o, m.GetName())] = memory{m.GetLabels(), m.GetAnnotations(), fields["spec"], fields["status"]}
			return err
		}))
	}
	return out
}

// rests waits until no object has changed for longer than a status may be delayed.
func (s *fixture) rests() {
	s.Helper()
	const lag = 5 * time.Second
	last, since := s.memories(), time.Now()
	s.Eventually("changes of objects", "nothing new", func() (string, error) {
		if diff := cmp.Diff(last, s.memories()); diff != "" {
			last, since = s.memories(), time.Now()
			return diff, nil
		}
		if time.Since(since) < lag {
			return "nothing for a moment", nil
		}
		return "nothing new", nil
	})
}

// remembers compares the objects with those before the loss, without the specs of Capacity- and TrafficTargets, which follow
// the clusters.
func (s *fixture) remembers(was map[string]memory) {
	s.Helper()
	asked := func(p cmp.Path) bool { return strings.Contains(p.String(), "Spec") && isTarget(p) }
	if diff := cmp.Diff(was, s.memories(), cmp.FilterPath(asked, cmp.Ignore()), cmpopts.EquateEmpty()); diff != "" {
		s.Errorf("what was restored (-want +got)\n%s", diff)
	}
}

// isTarget reports whether a path leads through a CapacityTarget or a TrafficTarget.
func isTarget(p cmp.Path) bool {
	return slices.ContainsFunc(p, func(step cmp.PathStep) bool {
		index, ok := step.(cmp.MapIndex)
		return ok && (strings.HasPrefix(index.Key().String(), "*v1alpha1.CapacityTarget ") ||
			strings.HasPrefix(index.Key().String(), "*v1alpha1.TrafficTarget "))
	})
}

// saysAgain waits until all objects are as before the loss, specs of targets included. Times of transition are ignored:
// conditions were unknown in between.
func (s *fixture) saysAgain(was map[string]memory) {
	s.Helper()
	since := func(p cmp.Path) bool {
		index, ok := p.Last().(cmp.MapIndex)
		return ok && index.Key().String() == "lastTransitionTime"
	}
	s.Eventually("objects", "as it was", func() (string, error) {
		if diff := cmp.Diff(was, s.memories(), cmp.FilterPath(since, cmp.Ignore()), cmpopts.EquateEmpty()); diff != "" {
			return diff, nil
		}
		return "as it was", nil
	})
}

// versions returns the resource versions of Shipper's objects in the management cluster, of Secrets and of Namespaces.
func (s *fixture) versions() map[string]string {
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{},
		&shipper.TrafficTargetList{}, &shipper.RolloutBlockList{}, &shipper.NotificationList{}, &shipper.ClusterList{},
		&corev1.SecretList{}, &corev1.NamespaceList{},
	} {
		s.Must("listing what there is", s.management.Management.List(s.Ctx, list))
		s.Must("reading what there is", meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err == nil {
				out[fmt.Sprintf("%T %s/%s", o, m.GetNamespace(), m.GetName())] = m.GetResourceVersion()
			}
			return err
		}))
	}
	return out
}

// running returns the UIDs of the Deployments and Pods in the test's namespace, by cluster.
func (s *fixture) running() map[string][]string {
	out := map[string][]string{}
	for name, c := range world.lost.Clusters {
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.PodList{}} {
			s.Must("listing what runs", c.List(s.Ctx, list, client.InNamespace(s.Namespace)))
			s.Must("reading what runs", meta.EachListItem(list, func(o runtime.Object) error {
				m, err := meta.Accessor(o)
				if err == nil {
					out[name] = append(out[name], fmt.Sprintf("%T %s %s", o, m.GetName(), m.GetUID()))
				}
				return err
			}))
		}
		slices.Sort(out[name])
	}
	return out
}
