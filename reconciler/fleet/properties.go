// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// propertiesInterval is the least time between two reports of properties of one cluster. Each report is at most one write of a status.
const propertiesInterval = 10 * time.Second

// Properties are what a cluster says of itself.
type Properties struct {
	// Nodes are sums over its Nodes; nil while the account may not read them.
	Nodes *NodeTotals
	// Declared are the properties in its ConfigMaps; nil while the account may not read them.
	Declared *Declared
	// Missing are the rights that the account lacks, such as "list and watch nodes"; empty when all is known.
	Missing []string
}

// Properties returns what the cluster said of itself on the present connection; nil while that is not known. It must not be changed.
func (f *Fleet) Properties(name string) *Properties {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.connections[name]; ok {
		return c.properties
	}
	return nil
}

// PropertyChanges is a source of requests for clusters whose Properties changed, named as the Clusters are: for each at most one in 10 s.
func (f *Fleet) PropertyChanges() source.Source {
	return named(func(handle func(cluster string)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.observers = append(f.observers, handle)
	})
}

// setProperties records the properties of c unless its session is over.
func (f *Fleet) setProperties(c *connection, s *session, p Properties) {
	f.mu.Lock()
	if f.connections[c.name] != c || c.member == nil || c.member.session != s {
		f.mu.Unlock()
		return
	}
	c.properties = &p
	observers := slices.Clone(f.observers)
	f.mu.Unlock()
	for _, handle := range observers {
		handle(c.name)
	}
}

// observe reports the properties of the cluster until ctx is done. A right that is missing ends nothing: its watch is tried again with
// the back-off of watches.
func (c *connection) observe(ctx context.Context, s *session) {
	o, err := newObserver(c.config(), &http.Client{Transport: s.answers})
	if err != nil {
		log.FromContext(ctx).WithName("fleet").Error(err, "Properties cannot be watched", "cluster", c.name)
		return
	}
	o.run(ctx, c.fleet.options.Clock, func(p Properties) { c.fleet.setProperties(c, s, p) })
}

// observer watches the Nodes of a cluster and the ConfigMaps with its properties. Their selectors are not those of the session's caches.
type observer struct {
	nodes, configMaps *watched
	changed           chan struct{} // has one element when something changed
}

// watched is the watch of one kind.
type watched struct {
	informer toolscache.SharedIndexInformer
	right    string // as Missing has it
	changed  func()

	mu                        sync.Mutex
	listRefused, watchRefused bool
}

func newObserver(config *rest.Config, hc *http.Client) (*observer, error) {
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	c, err := corev1client.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes: %w", err)
	}
	o := &observer{changed: make(chan struct{}, 1)}
	nodes := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, of metav1.ListOptions) (runtime.Object, error) {
			return c.Nodes().List(ctx, of)
		},
		WatchFuncWithContext: func(ctx context.Context, of metav1.ListOptions) (apiwatch.Interface, error) {
			return c.Nodes().Watch(ctx, of)
		},
	}
	labelled := func(of metav1.ListOptions) metav1.ListOptions {
		of.LabelSelector = shipper.PropertiesLabel + "=true"
		return of
	}
	configMaps := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, of metav1.ListOptions) (runtime.Object, error) {
			return c.ConfigMaps(shipper.SystemNamespace).List(ctx, labelled(of))
		},
		WatchFuncWithContext: func(ctx context.Context, of metav1.ListOptions) (apiwatch.Interface, error) {
			return c.ConfigMaps(shipper.SystemNamespace).Watch(ctx, labelled(of))
		},
	}
	same := func(before, after *corev1.Node) bool { return equality.Semantic.DeepEqual(before.Status, after.Status) }
	sameData := func(before, after *corev1.ConfigMap) bool {
		return equality.Semantic.DeepEqual(before.Data, after.Data)
	}
	if o.nodes, err = watchOf(nodes, "list and watch nodes", stripNode, same, o.signal); err != nil {
		return nil, err
	}
	right := "list and watch configmaps in namespace " + shipper.SystemNamespace
	if o.configMaps, err = watchOf(configMaps, right, stripConfigMap, sameData, o.signal); err != nil {
		return nil, err
	}
	return o, nil
}

// watchOf makes the watch of one kind. changed is called when an object comes, goes or is not the same any more.
func watchOf[T any, P interface {
	*T
	runtime.Object
}](
	lw *toolscache.ListWatch, right string, strip toolscache.TransformFunc, same func(before, after P) bool, changed func(),
) (*watched, error) {
	w := &watched{right: right, changed: changed}
	list, start := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, of metav1.ListOptions) (runtime.Object, error) {
		out, err := list(ctx, of)
		w.note(err, &w.listRefused)
		return out, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, of metav1.ListOptions) (apiwatch.Interface, error) {
		out, err := start(ctx, of)
		if w.note(err, &w.watchRefused); err == nil && ptr.Deref(of.SendInitialEvents, false) {
			w.note(nil, &w.listRefused) // such a watch is the list, too
		}
		return out, err
	}
	w.informer = toolscache.NewSharedIndexInformerWithOptions(lw, P(new(T)), toolscache.SharedIndexInformerOptions{})
	if err := w.informer.SetTransform(strip); err != nil {
		return nil, fmt.Errorf("watching what a cluster is: %w", err)
	}
	// The heartbeat reports a cluster that died, and Missing a right that is missing.
	err := w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		log.FromContext(ctx).WithName("fleet").V(2).Info("A watch ended", "reason", err.Error())
	})
	if err != nil {
		return nil, fmt.Errorf("watching what a cluster is: %w", err)
	}
	_, err = w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			was, ok := before.(P)
			is, also := after.(P)
			if !ok || !also || !same(was, is) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching what a cluster is: %w", err)
	}
	return w, nil
}

// note records whether the API server refuses a request. An error of another kind says nothing of rights.
func (w *watched) note(err error, refused *bool) {
	if err != nil && !apierrors.IsForbidden(err) {
		return
	}
	w.mu.Lock()
	was := *refused
	*refused = err != nil
	turned := was != *refused
	w.mu.Unlock()
	if turned {
		w.changed()
	}
}

// state reports whether the account lacks a right and, if not, whether every object is known.
func (w *watched) state() (refused, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	refused = w.listRefused || w.watchRefused
	return refused, !refused && w.informer.HasSynced()
}

// objects are those that the watch knows.
func objects[T any](w *watched) []T {
	var out []T
	for _, o := range w.informer.GetStore().List() {
		if one, ok := o.(T); ok {
			out = append(out, one)
		}
	}
	return out
}

func (o *observer) signal() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// properties are those that are known; ok is false until each kind is known or refused.
func (o *observer) properties() (p Properties, ok bool) {
	for _, w := range []*watched{o.nodes, o.configMaps} {
		refused, known := w.state()
		switch {
		case refused:
			p.Missing = append(p.Missing, w.right)
		case !known:
			return Properties{}, false
		case w == o.nodes:
			p.Nodes = totalsOf(objects[*corev1.Node](w))
		default:
			p.Declared = declaredIn(objects[*corev1.ConfigMap](w))
		}
	}
	return p, true
}

// run reports properties as they change, no more than one time in propertiesInterval, until ctx is done and the watches have ended.
func (o *observer) run(ctx context.Context, clock clock.WithTicker, report func(Properties)) {
	var watches sync.WaitGroup
	defer watches.Wait()
	for _, w := range []*watched{o.nodes, o.configMaps} {
		watches.Go(func() { w.informer.RunWithContext(ctx) })
		watches.Go(func() {
			select {
			case <-ctx.Done():
			case <-w.informer.HasSyncedChecker().Done():
				o.signal()
			}
		})
	}
	var last *Properties
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		}
		p, ok := o.properties()
		if !ok || last != nil && equality.Semantic.DeepEqual(*last, p) {
			continue
		}
		report(p)
		last = &p
		timer := clock.NewTimer(propertiesInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// Problem says for users which rights are missing and how to grant them; empty when all is known.
func (p *Properties) Problem() string {
	if len(p.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf("Shipper's account in this cluster may not %s: run `shipperctl clusters join` again, or grant it by a ClusterRole "+
		"with the label %s: \"true\" in that cluster", strings.Join(p.Missing, ", nor "), aggregateLabel)
}

// aggregateLabel marks ClusterRoles whose rights Shipper's account in an application cluster gets.
const aggregateLabel = shipper.AggregateLabel
