// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// The goals of Resources: requests for one placement, and the ratio of many placements at once to the floor.
const (
	maxPlacedManagement  = 24
	maxPlacedApplication = 7
	maxPlacedBurst       = 1.5
)

const placedClusters = 2

// Resources is content of the management cluster, a ConfigMap and a Deployment, that is placed on two clusters: one Application after
// another, an update of the image of each, then many at once. The floor is a program that knows what to write, writes it to both clusters
// side by side, and watches for its Pods.
type Resources struct {
	// Rounds is how many Applications are placed one after another.
	Rounds int
	// Applications is how many are placed at once.
	Applications int
	// Rest is how long all are watched at rest afterwards.
	Rest time.Duration
}

// placedTimes are how long the two things took of which the floor knows the first: Pods are ready, the Release is complete.
type placedTimes struct{ ready, complete []time.Duration }

// Run measures, and prints what was asked for in a placement to out. All times are given to samples.
func (o Resources) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: placedClusters})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	p, err := newPlacing(ctx, w)
	if err != nil {
		return nil, err
	}
	names := []string{"a placement", "an update of the image"}
	var ours [2]placedTimes
	var floors [2][]time.Duration
	var asked world.Requests
	for round := range o.Rounds + 1 { // the first warms up
		for i, side := range []bool{round%2 == 0, round%2 != 0} {
			if side {
				if err := p.byHand(ctx, round, &floors); err != nil {
					return nil, fmt.Errorf("by hand, turn %d: %w", i, err)
				}
			} else if asked, err = p.byShipper(ctx, round, &ours); err != nil {
				return nil, err
			}
		}
	}
	fmt.Fprintln(out, "what Shipper asked for in a placement:")
	asked.Explain(out)
	for i, name := range names {
		took, floor := ours[i], floors[i][1:]
		for side, times := range map[string][]time.Duration{"shipper": took.ready[1:], "shipper-complete": took.complete[1:], "floor": floor} {
			if err := table.WriteSamples(samples, fmt.Sprintf("Resources/of=%d/side=%s", i, side), times); err != nil {
				return nil, err
			}
		}
		beside := func(what string, times []time.Duration) table.Line {
			return table.Line{Row: "resources", Of: name + what, Ours: table.Median(times), Floor: table.Median(floor), Unit: table.Seconds}
		}
		lines = append(lines, beside(" to Pods ready", took.ready[1:]), beside(" to Complete", took.complete[1:]))
	}
	requests := func(to string, n, most int) table.Line {
		return table.Line{Row: "resources", Of: "requests of a placement to " + to, Ours: float64(n), Most: table.Goal(float64(most))}
	}
	lines = append(lines, requests("management", asked.Management, maxPlacedManagement),
		requests("an application cluster", asked.Application, maxPlacedApplication))
	both, err := p.atOnce(ctx, o.Applications)
	if err != nil {
		return lines, fmt.Errorf("placing %d at once: %w", o.Applications, err)
	}
	lines = append(lines, table.Line{
		Row: "resources", Of: fmt.Sprintf("%d placements at once", o.Applications), Ours: both[0].Seconds(), Floor: both[1].Seconds(),
		Unit: table.Seconds, Most: table.Goal(maxPlacedBurst),
	})
	rest, err := w.AtRest(ctx, o.Rest)
	return append(lines, rest.Lines("resources", maxCores)...), err
}

// placing is what both sides place with.
type placing struct {
	world *world.World
	sight *world.Sight
	// factories watch all of each cluster.
	watched [placedClusters]func(namespace string) (*sight, error)
}

func newPlacing(ctx context.Context, w *world.World) (*placing, error) {
	p := &placing{world: w}
	var err error
	if p.sight, err = w.Look(ctx); err != nil {
		return nil, err
	}
	for c := range placedClusters {
		factory, err := look(ctx, w.Clusters[c], "")
		if err != nil {
			return nil, err
		}
		p.watched[c] = func(namespace string) (*sight, error) { return sightOf(factory, namespace) }
	}
	return p, w.Management.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: shipper.ResourceSelectorRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ResourceSelectorRole},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	})
}

// placedReplicas is how many Pods the Deployment has in each cluster.
const placedReplicas = 3

// placedContent is what is placed.
func placedContent(namespace, image string) (*corev1.ConfigMap, *appsv1.Deployment) {
	labels := map[string]string{"place": "it"}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "v"}}, &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](placedReplicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: image}}},
			},
		},
	}
}

// The images that are placed first and then.
const firstImage, nextImage = "nginx:stable", "nginx:mainline"

// keep writes the content to the management cluster.
func (p *placing) keep(ctx context.Context, namespace string) error {
	cm, d := placedContent(namespace, firstImage)
	if err := p.world.MakeNamespace(ctx, namespace, placedClusters); err != nil {
		return err
	}
	return errors.Join(p.world.Management.Create(ctx, cm), p.world.Management.Create(ctx, d))
}

// application is one that places it.
func (p *placing) application(namespace string) *shipper.Application {
	app := p.world.Application(namespace, placedClusters, placedReplicas)
	app.Spec.Template.Chart, app.Spec.Template.Values, app.Spec.Template.Strategy = shipper.Chart{}, nil, nil
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"place": "it"}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{
		{Kind: "ConfigMap", LabelSelector: selector}, {Group: appsv1.GroupName, Kind: "Deployment", LabelSelector: selector},
	}}
	return app
}

// runs waits until the Deployment runs an image in all clusters.
func (p *placing) runs(ctx context.Context, namespace, image string) error {
	return world.InParallel(placedClusters, func(c int) error {
		s, err := p.watched[c](namespace)
		if err != nil {
			return err
		}
		return s.until(ctx, func() bool {
			d, err := s.factory.Apps().V1().Deployments().Lister().Deployments(namespace).Get("web")
			return err == nil && d.Spec.Template.Spec.Containers[0].Image == image && s.available("web") == placedReplicas &&
				d.Status.UpdatedReplicas == placedReplicas
		})
	})
}

// byShipper places and updates, and returns what was asked for in the placement.
func (p *placing) byShipper(ctx context.Context, round int, took *[2]placedTimes) (world.Requests, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	namespace := fmt.Sprintf("placed-%d", round)
	if err := p.keep(ctx, namespace); err != nil {
		return world.Requests{}, err
	}
	app := p.application(namespace)
	var asked world.Requests
	before, err := p.world.Count()
	if err != nil {
		return asked, err
	}
	_, next := placedContent(namespace, nextImage)
	for i, do := range []func() error{
		func() error { return p.world.Management.Create(ctx, app) },
		func() error { return p.world.Management.Patch(ctx, next, client.Merge) },
	} {
		began := time.Now()
		if err := do(); err != nil {
			return asked, err
		}
		if err := p.runs(ctx, namespace, []string{firstImage, nextImage}[i]); err != nil {
			return asked, err
		}
		took[i].ready = append(took[i].ready, time.Since(began))
		if err := p.completes(ctx, i, client.ObjectKeyFromObject(app)); err != nil {
			return asked, err
		}
		took[i].complete = append(took[i].complete, time.Since(began))
		fmt.Printf("%s, %d: Pods ready %s, complete %s\n", namespace, i, took[i].ready[round].Round(time.Millisecond),
			took[i].complete[round].Round(time.Millisecond))
		if i == 0 {
			after, err := p.world.Count()
			if err != nil {
				return asked, err
			}
			asked = after.Minus(before)
		}
	}
	return asked, nil
}

// completes waits until the n-th Release of Applications is complete.
func (p *placing) completes(ctx context.Context, n int, of ...client.ObjectKey) error {
	return p.sight.Until(ctx, of, func(_ *shipper.Application, rel *shipper.Release) bool {
		return world.Achieved(rel, n, 0) && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete)
	})
}

// byHand places and updates without Shipper.
func (p *placing) byHand(ctx context.Context, round int, took *[2][]time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	namespace := fmt.Sprintf("by-hand-%d", round)
	if err := p.world.MakeNamespace(ctx, namespace, placedClusters); err != nil {
		return err
	}
	for i, image := range []string{firstImage, nextImage} {
		began := time.Now()
		if err := p.write(ctx, namespace, image); err != nil {
			return err
		}
		if err := p.runs(ctx, namespace, image); err != nil {
			return err
		}
		took[i] = append(took[i], time.Since(began))
		fmt.Printf("%s, %d: Pods ready %s\n", namespace, i, took[i][round].Round(time.Millisecond))
	}
	return nil
}

// write writes the content to the clusters: the Deployment alone when it is updated.
func (p *placing) write(ctx context.Context, namespace, image string) error {
	cm, d := placedContent(namespace, image)
	return world.InParallel(placedClusters, func(c int) error { return writeIn(ctx, p.world.Clusters[c], cm, d, image == firstImage) })
}

func writeIn(ctx context.Context, typed kubernetes.Interface, cm *corev1.ConfigMap, d *appsv1.Deployment, first bool) error {
	if !first {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":%q}]}}}}`, nextImage)
		_, err := typed.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if _, err := typed.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := typed.AppsV1().Deployments(d.Namespace).Create(ctx, d, metav1.CreateOptions{})
	return err
}

// atOnce is how long Shipper takes until so many Applications are complete, and how long the floor takes until its Pods are ready.
func (p *placing) atOnce(ctx context.Context, n int) (took [2]time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	ours := func(i int) string { return fmt.Sprintf("at-once-%d", i) }
	floors := func(i int) string { return fmt.Sprintf("at-once-by-hand-%d", i) }
	if err := world.AtMost(writers, n, func(i int) error {
		return errors.Join(p.keep(ctx, ours(i)), p.world.MakeNamespace(ctx, floors(i), placedClusters))
	}); err != nil {
		return took, err
	}
	began := time.Now()
	if err := world.AtMost(writers, n, func(i int) error { return p.write(ctx, floors(i), firstImage) }); err != nil {
		return took, err
	}
	if err := world.InParallel(n, func(i int) error { return p.runs(ctx, floors(i), firstImage) }); err != nil {
		return took, err
	}
	took[1] = time.Since(began)
	fmt.Printf("%d by hand: %s\n", n, took[1].Round(time.Millisecond))
	var keys []client.ObjectKey
	for i := range n {
		keys = append(keys, client.ObjectKeyFromObject(p.application(ours(i))))
	}
	began = time.Now()
	if err := world.AtMost(writers, n, func(i int) error { return p.world.Management.Create(ctx, p.application(ours(i))) }); err != nil {
		return took, err
	}
	if err := p.completes(ctx, 0, keys...); err != nil {
		return took, err
	}
	took[0] = time.Since(began)
	fmt.Printf("%d by Shipper: %s\n", n, took[0].Round(time.Millisecond))
	return took, nil
}
