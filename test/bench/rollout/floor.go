// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/test/bench/world"
)

// The labels of the floor's Pods: whose they are, and whether they have traffic.
const (
	versionLabel = "version"
	trafficLabel = "traffic"
)

// floor is the hand-written program in one cluster. It knows what it watches and asks for nothing, and no call waits for
// another that it does not depend on.
type floor struct {
	typed     kubernetes.Interface
	namespace string
	sight     *sight
	version   int // of the incumbent
	replicas  int32
}

// newFloor makes the Service and the first version, with all of its capacity and traffic.
func newFloor(ctx context.Context, typed kubernetes.Interface, namespace string, replicas int32) (*floor, error) {
	factory, err := look(ctx, typed, namespace)
	if err != nil {
		return nil, err
	}
	f, err := newFloorIn(ctx, typed, factory, namespace, replicas)
	if err != nil {
		return nil, err
	}
	if err := f.makeService(ctx); err != nil {
		return nil, err
	}
	if err := f.install(ctx, 0, replicas); err != nil {
		return nil, err
	}
	return f, f.enable(ctx, 0, int(replicas))
}

// newFloorIn makes a namespace in which there is nothing yet, and sees it by informers of factory.
func newFloorIn(ctx context.Context, typed kubernetes.Interface, factory informers.SharedInformerFactory, namespace string, replicas int32,
) (*floor, error) {
	f := &floor{typed: typed, namespace: namespace, replicas: replicas}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	var err error
	f.sight, err = sightOf(factory, namespace)
	return f, err
}

// makeService makes the Service, which selects Pods that have traffic.
func (f *floor) makeService(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "lb"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{trafficLabel: "enabled"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
	}}
	_, err := f.typed.CoreV1().Services(f.namespace).Create(ctx, service, metav1.CreateOptions{})
	return err
}

// steps are those of an upgrade to the next version: staging, 50/50, full on.
func (f *floor) steps() []func(context.Context) error {
	old, next, half := f.version, f.version+1, f.replicas/2
	return []func(context.Context) error{
		func(ctx context.Context) error { return f.install(ctx, next, min(1, f.replicas)) },
		func(ctx context.Context) error { return f.shift(ctx, old, next, half) },
		func(ctx context.Context) error {
			f.version = next
			return f.shift(ctx, old, next, f.replicas)
		},
	}
}

// switches are the steps of an upgrade by blue/green: all Pods of the next version, then the Service, then the old Pods' end.
func (f *floor) switches() []func(context.Context) error {
	old, next := f.version, f.version+1
	return []func(context.Context) error{
		func(ctx context.Context) error { return f.install(ctx, next, f.replicas) },
		func(ctx context.Context) error {
			f.version = next
			if err := f.point(ctx, next); err != nil {
				return err
			}
			return f.scale(ctx, old, 0)
		},
	}
}

// point has the Service select the Pods of a version, and waits until all of them are endpoints and no others are.
func (f *floor) point(ctx context.Context, version int) error {
	patch := fmt.Appendf(nil, `{"spec":{"selector":{%q:null,%q:"%d"}}}`, trafficLabel, versionLabel, version)
	if _, err := f.typed.CoreV1().Services(f.namespace).Patch(ctx, "lb", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	return f.sight.until(ctx, func() bool {
		return f.sight.endpoints(f.name(version)) == int(f.replicas) && (version == 0 || f.sight.endpoints(f.name(version-1)) == 0)
	})
}

// shift gives the next version a number of Pods and their traffic, then takes as much from the old one.
func (f *floor) shift(ctx context.Context, old, next int, count int32) error {
	if err := f.scale(ctx, next, count); err != nil {
		return err
	}
	if err := f.enable(ctx, next, int(count)); err != nil {
		return err
	}
	if err := f.disable(ctx, old, int(f.replicas-count)); err != nil {
		return err
	}
	return f.scale(ctx, old, f.replicas-count)
}

// install creates the Deployment of a version and waits for its Pods.
func (f *floor) install(ctx context.Context, version int, count int32) error {
	labels := map[string]string{versionLabel: fmt.Sprint(version)}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: f.name(version)}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(count),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:stable"}}},
		},
	}}
	if _, err := f.typed.AppsV1().Deployments(f.namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.sight.until(ctx, func() bool {
		return f.sight.available(f.name(version)) == count && len(f.sight.ready(version)) == int(count)
	})
}

// scale gives a version a number of Pods and waits until it has them.
func (f *floor) scale(ctx context.Context, version int, count int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
	_, err := f.typed.AppsV1().Deployments(f.namespace).Patch(ctx, f.name(version), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return f.sight.until(ctx, func() bool {
		return f.sight.available(f.name(version)) == count && len(f.sight.ready(version)) == int(count)
	})
}

// enable gives traffic to Pods of a version until a number of them have it, and waits until those are endpoints.
func (f *floor) enable(ctx context.Context, version, count int) error {
	without, with := f.byTraffic(version)
	return f.label(ctx, version, without[:count-len(with)], `{"metadata":{"labels":{"traffic":"enabled"}}}`, count)
}

// disable takes traffic from all but a number of Pods of a version, and waits until they are no endpoints. Those that go next
// are those without traffic.
func (f *floor) disable(ctx context.Context, version, remain int) error {
	_, with := f.byTraffic(version)
	patch := `{"metadata":{"labels":{"traffic":null},"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`
	return f.label(ctx, version, with[remain:], patch, remain)
}

// byTraffic lists the Pods of a version that have no traffic, and those that have.
func (f *floor) byTraffic(version int) (without, with []*corev1.Pod) {
	for _, p := range f.sight.ready(version) {
		if p.Labels[trafficLabel] == "" {
			without = append(without, p)
		} else {
			with = append(with, p)
		}
	}
	return without, with
}

// label patches Pods side by side, and waits for the number of endpoints that the version then has.
func (f *floor) label(ctx context.Context, version int, pods []*corev1.Pod, patch string, endpoints int) error {
	err := world.InParallel(len(pods), func(i int) error {
		_, err := f.typed.CoreV1().Pods(f.namespace).Patch(ctx, pods[i].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return f.sight.until(ctx, func() bool { return f.sight.endpoints(f.name(version)) == endpoints })
}

func (f *floor) name(version int) string { return fmt.Sprintf("v%d", version) }
