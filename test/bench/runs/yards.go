// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// The sequences of the first stage.
const delivery, question = "delivery", "question"

const stages = `
stages:
- name: dev
  sequences:
  - {name: delivery, tasks: [{name: evaluation}, {name: evaluation}, {name: approval, properties: {pass: automatic}}]}
  - {name: question, tasks: [{name: approval}]}
- name: prod
  sequences:
  - name: delivery
    triggeredOn: [{event: dev.delivery.finished}]
    tasks: [{name: evaluation}, {name: approval, properties: {pass: automatic}}]
`

// yards are Shipyards of one namespace, and the runs of it as a watch has shown them.
type yards struct {
	world     *world.World
	namespace string

	mu      sync.Mutex
	changed chan struct{} // closed at the next event
	runs    map[string]*seen
	err     error
}

// seen is a run, and when the watch first showed that its tasks had begun and ended.
type seen struct {
	run          *shipper.SequenceRun
	begun, ended []time.Time
}

// newYards makes the Shipyards and what their runs need, and begins to watch runs. The watch ends with ctx.
func newYards(ctx context.Context, w *world.World, namespace string) (*yards, error) {
	o := &yards{world: w, namespace: namespace, changed: make(chan struct{}), runs: map[string]*seen{}}
	if err := w.MakeNamespace(ctx, namespace, 0); err != nil {
		return nil, err
	}
	if err := MakeYards(ctx, w, namespace); err != nil {
		return nil, err
	}
	return o, o.watch(ctx)
}

// MakeYards makes, in a namespace that is there, the Shipyards and what their runs need.
func MakeYards(ctx context.Context, w *world.World, namespace string) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	bind := func(role, in, account string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: meta(account), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: account}},
		}
	}
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(shipper.DefaultRunner)},
		bind(shipper.RunnerImpersonatorRole, shipper.SystemNamespace, shipper.ManagementServiceAccount),
		bind("shipper:runner", namespace, shipper.DefaultRunner),
	}
	for i := range shipyards {
		yard := &shipper.Shipyard{ObjectMeta: meta(yardOf(i))}
		if err := yaml.UnmarshalStrict([]byte(stages), &yard.Spec); err != nil {
			return fmt.Errorf("reading the shipyard: %w", err)
		}
		objects = append(objects, yard)
	}
	for _, object := range objects {
		if err := w.Management.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// watch begins to watch runs. It is an informer: the API server ends the watch of a client that is too slow for it.
func (o *yards) watch(ctx context.Context) error {
	informers, err := cache.New(o.world.Fleet.Management.Config, cache.Options{
		Scheme: o.world.Management.Scheme(), DefaultNamespaces: map[string]cache.Config{o.namespace: {}},
	})
	if err != nil {
		return fmt.Errorf("watching runs: %w", err)
	}
	informer, err := informers.GetInformer(ctx, &shipper.SequenceRun{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching runs: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: o.take, UpdateFunc: func(_, object any) { o.take(object) },
	})
	if err != nil {
		return fmt.Errorf("watching runs: %w", err)
	}
	go func() { o.take(informers.Start(ctx)) }()
	return nil
}

// yardOf is the Shipyard of a service.
func yardOf(service int) string { return fmt.Sprintf("yard-%d", service%shipyards) }

// run is a new one of a service in the first stage.
func (o *yards) run(service int, sequence string) *shipper.SequenceRun {
	run := Delivery(o.namespace, service)
	run.Spec.Sequence = sequence
	return run
}

// Delivery is a run that delivers a service, in one of the Shipyards of MakeYards.
func Delivery(namespace string, service int) *shipper.SequenceRun {
	name := fmt.Sprintf("service-%d", service)
	return &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       shipper.SequenceRunSpec{Shipyard: yardOf(service), Sequence: delivery, Service: name},
	}
}

func (o *yards) create(ctx context.Context, service int, sequence string) error {
	return o.world.Management.Create(ctx, o.run(service, sequence))
}

// take notes what an event shows. Anything but a run means that the watch has ended.
func (o *yards) take(object any) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if run, is := object.(*shipper.SequenceRun); is {
		s := o.runs[run.Name]
		if s == nil {
			s = &seen{}
			o.runs[run.Name] = s
		}
		s.run = run
		for i := range run.Status.Tasks {
			if i == len(s.begun) {
				s.begun = append(s.begun, now)
			}
			if i == len(s.ended) && run.Status.Tasks[i].FinishTime != nil {
				s.ended = append(s.ended, now)
			}
		}
	} else {
		o.err = fmt.Errorf("the watch of runs ended: %v", object)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// until blocks until so many runs are in a state. A run that has failed is an error.
func (o *yards) until(ctx context.Context, n int, so func(*shipper.SequenceRun) bool) error {
	for {
		o.mu.Lock()
		is, err, changed := 0, o.err, o.changed
		for name, s := range o.runs {
			if so(s.run) {
				is++
			}
			if s.run.Status.Result == shipper.ResultFail {
				err = errors.Join(err, fmt.Errorf("run %s failed: %s", name, s.run.Status.Message))
			}
		}
		o.mu.Unlock()
		if is >= n || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d runs: %w", is, n, context.Cause(ctx))
		}
	}
}

// waits reports whether a run waits for an approval.
func waits(run *shipper.SequenceRun) bool {
	task := shipyard.UnderWay(run)
	return task != nil && task.State == shipper.TaskWaiting
}

// drained blocks until Shipper writes nothing for a while: events are sent late.
func (o *yards) drained(ctx context.Context) error {
	for {
		rest, err := o.world.AtRest(ctx, time.Second)
		if err != nil || rest.Asked.Writes == 0 {
			return err
		}
	}
}

// lastBegin is when the last of the runs that users created was seen to begin.
func (o *yards) lastBegin() (last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.runs {
		if s.run.Labels[shipper.TriggeredByLabel] == "" && s.begun[0].After(last) {
			last = s.begun[0]
		}
	}
	return last
}

// gaps are times between tasks as a watch shows them.
type gaps struct {
	// within is from the end of a task to the begin of the next of its run, followUp from the end of a run to the begin of the next one's
	// first task, and task from the begin of a first task to its end.
	within, followUp, task []time.Duration
}

// gaps of the runs of all services from one on.
func (o *yards) gaps(from int) (g gaps) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := from; o.runs[o.run(i, "").Name] != nil; i++ {
		s := o.runs[o.run(i, "").Name]
		next := o.runs[s.run.Status.Triggered[0].Name]
		for task := range s.ended[1:] {
			g.within = append(g.within, s.begun[task+1].Sub(s.ended[task]))
		}
		g.followUp = append(g.followUp, next.begun[0].Sub(s.ended[len(s.ended)-1]))
		g.task = append(g.task, s.ended[0].Sub(s.begun[0]))
	}
	return g
}

// lines of the table, with goals or without.
func (g gaps) lines(row string, judged bool) (out []table.Line) {
	for _, one := range []struct {
		of     string
		times  []time.Duration
		median *float64
	}{
		{"a task's end to the next one's begin", g.within, table.Goal(maxNext.Seconds())},
		{"a first task's begin to its end", g.task, table.Goal(maxNext.Seconds())},
		{"a run's end to the first task of the next", g.followUp, nil},
	} {
		median := table.Line{Row: row, Of: one.of + ", median", Ours: table.Median(one.times), Unit: table.Seconds}
		most := table.Line{Row: row, Of: one.of + ", 99 of 100", Ours: table.Percentile(one.times, 99), Unit: table.Seconds}
		if judged {
			median.Most, most.Most = one.median, table.Goal(maxNextAll.Seconds())
		}
		out = append(out, median, most)
	}
	return out
}
