// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/start"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/rollout"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/memory"
)

// many is how many Applications the crowd has.
const many = 20

// gate is where writes of the one worker are noted, and may be held.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while nothing is held
	seen []string      // the Applications that were written for, or whose Releases were
}

// close holds all writes to come, and forgets those before. What it returns lets them go.
func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.seen = make(chan struct{}), nil
	return sync.OnceFunc(func() { close(g.open) })
}

func (g *gate) pass(ctx context.Context, o client.Object) {
	name := o.GetName()
	if _, ok := o.(*shipper.Release); ok {
		name = o.GetLabels()[shipper.AppLabel]
	}
	g.mu.Lock()
	g.seen = append(g.seen, o.GetNamespace()+"/"+name)
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}

// order is that in which Applications were written for, each once.
func (g *gate) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, name := range g.seen {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// client makes a client of which the gate holds the writes, but those of statuses.
func (g *gate) client(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			g.pass(ctx, o)
			return to.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			g.pass(ctx, o)
			return to.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			g.pass(ctx, o)
			return to.Patch(ctx, o, p, opts...)
		},
	}), nil
}

// fixture is a management cluster in which one worker makes Releases of Applications.
type fixture struct {
	*testing.T
	client.Client
	gate  gate
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]] // once the controller has started
}

func begin(t *testing.T) *fixture {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	s := &fixture{T: t}
	s.gate.close()()
	kinds, err := memory.Management()
	s.must(err)
	server, err := memory.Start(memory.Options{Kinds: kinds})
	s.must(err)
	t.Cleanup(server.Close)
	config := server.Config()
	config.QPS = -1
	scheme, err := reconciler.NewScheme()
	s.must(err)
	s.Client, err = client.New(config, client.Options{Scheme: scheme})
	s.must(err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, NewClient: s.gate.client, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	s.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	histories, err := history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader())
	s.must(err)
	priorities, err := history.NewPriorities(ctx, mgr.GetCache(), histories)
	s.must(err)
	s.must(rollout.SetupWithManager(ctx, mgr, rollout.Options{
		GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, Histories: histories, Clock: clock.RealClock{}, Workers: 1,
		Queue: func(name string, retries workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			made := queue.Objects(8, priorities.OfApplication)(name, retries)
			s.queue.Store(&made)
			return made
		},
	}))
	ended := make(chan error, 1)
	go func() { ended <- start.Manager(ctx, mgr) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	// Objects that exist when the controller starts have another priority than later ones.
	s.apply(metav1.NamespaceDefault, "first")
	s.released(metav1.NamespaceDefault, "first", 1)
	return s
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) soon(what string, so func() bool) {
	s.Helper()
	env.Eventually(s, "the end of: "+what, func(context.Context) error {
		if !so() {
			return fmt.Errorf("written so far: %v", s.gate.order())
		}
		return nil
	})
}

func (s *fixture) apply(namespace, name string) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	app.Annotations = map[string]string{shipper.AppRequestedByAnnotation: "ann"} // by a webhook, which has judged the chart
	app.Spec.Template = shipper.ReleaseEnvironment{
		Chart:               shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example", Naming: shipper.NamingByRelease},
		Values:              &shipper.ChartValues{"edit": int64(0)},
		Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
	}
	s.must(s.Create(s.Context(), app))
}

// edit asks for another Release.
func (s *fixture) edit(namespace, name string) {
	s.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.must(s.Patch(s.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"values":{"edit":1}}}}`))))
}

// released waits until an Application has made so many Releases and says so, and returns them in no order.
func (s *fixture) released(namespace, name string, n int) []shipper.Release {
	s.Helper()
	var list shipper.ReleaseList
	s.soon(fmt.Sprintf("%s/%s has not made %d Releases", namespace, name, n), func() bool {
		var app shipper.Application
		s.must(s.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &app))
		s.must(s.List(s.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: name}))
		return len(list.Items) == n && app.Annotations[shipper.AppHighestObservedGenerationAnnotation] == fmt.Sprint(n-1) &&
			shipper.ConditionTrue(app.Status.Conditions, shipper.ApplicationReleaseSynced)
	})
	return list.Items
}

// rests waits until no request was reconciled for as long as 25 looks take: the last event of a rollout may be on its way.
func (s *fixture) rests() {
	s.Helper()
	passed, looks := -1, 0
	s.soon("it does not come to rest", func() bool {
		if now := s.passes(); now != passed || s.waiting() > 0 {
			passed, looks = now, 0
		}
		looks++
		return looks > 25
	})
}

// waiting is how many Applications wait for the worker. Metrics of client-go's queues do not say it here: packages of kube-apiserver,
// which serve from memory, have them in a registry of their own.
func (s *fixture) waiting() int {
	if q := s.queue.Load(); q != nil {
		return (*q).Len()
	}
	return 0
}

// passes is how often a request was reconciled.
func (s *fixture) passes() int {
	s.Helper()
	families, err := metrics.Registry.Gather()
	s.must(err)
	n := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return int(n)
}

// TestABacklogDelaysOthersByOneTurn holds the only worker until everybody waits for it, lets it go, and looks in which order it
// writes.
func TestABacklogDelaysOthersByOneTurn(t *testing.T) {
	s := begin(t)
	for _, name := range []string{"crowd", "other"} {
		s.must(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	open := s.gate.close()
	defer open()
	for i := range many {
		s.apply("crowd", fmt.Sprint("app-", i))
	}
	s.soon("the crowd does not wait", func() bool { return s.waiting() == many-1 })
	s.apply("other", "one")
	s.soon("the other does not wait", func() bool { return s.waiting() == many })
	open()
	s.soon("not all was done", func() bool { return len(s.gate.order()) == many+1 })
	// One of the crowd is held, and one more of it may have its turn.
	if at := slices.Index(s.gate.order(), "other/one"); at > 2 {
		t.Errorf("the other's only edit came after %d of the crowd's: %v", at, s.gate.order())
	}

	for i := range many {
		s.released("crowd", fmt.Sprint("app-", i), 1)
	}
	s.edit("crowd", "app-0")
	rels := s.released("crowd", "app-0", 2)
	s.rests()
	open = s.gate.close()
	defer open()
	for i := 1; i < many; i++ {
		s.edit("crowd", fmt.Sprint("app-", i))
	}
	s.soon("the crowd does not wait again", func() bool { return s.waiting() >= many-2 })
	newest := slices.IndexFunc(rels, func(rel shipper.Release) bool { return rel.Annotations[shipper.ReleaseGenerationAnnotation] == "1" })
	s.must(s.Delete(t.Context(), &rels[newest]))
	s.soon("the abort does not wait", func() bool { return s.waiting() >= many-1 })
	open()
	s.soon("not all was done", func() bool { return len(s.gate.order()) == many })
	if at := slices.Index(s.gate.order(), "crowd/app-0"); at > 2 {
		t.Errorf("an abort came after %d of its namespace's advances: %v", at, s.gate.order())
	}
}
