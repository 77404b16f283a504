// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// Options of New.
type Options struct {
	// Policy says what may be placed. The webhook has the same.
	Policy objects.Policy
	// Clock is the time.
	Clock clock.PassiveClock
	// Registry is where metrics go. Nil: nowhere.
	Registry prometheus.Registerer
}

// Source reads what Applications select, and requests a pass of an Application when that changes: it is a source.Source. It is safe for
// concurrent use.
type Source struct {
	reader  *reader
	slots   *slots
	rights  *asker
	clock   clock.PassiveClock
	changes *changes
	watches *watches
	lag     prometheus.Histogram

	mu sync.Mutex
	// known has what was last read for each Application.
	known map[types.NamespacedName]known
}

// known is what was read for an Application, or why it could not be.
type known struct {
	// fingerprint is of what the result depends on in the Application.
	fingerprint string
	content     *Content
	problem     *Problem
	// until is when a problem is looked at again; zero if a change does that.
	until time.Time
}

// New returns a Source that reads from the management cluster of mgr.
func New(mgr ctrl.Manager, o Options) (*Source, error) {
	lag, err := newLag(o.Registry)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	watched, err := metadata.NewForConfigAndClient(metadata.ConfigFor(mgr.GetConfig()), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for metadata: %w", err)
	}
	// The manager's client would start a watch of what it creates, and reviews cannot be watched.
	reviews, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client for reviews: %w", err)
	}
	changed := newChanges(o.Clock)
	watches := newWatches(watched, reviews, changed)
	return &Source{
		slots:  newSlots(maxPasses, o.Clock, watches.request),
		reader: newReader(mgr.GetAPIReader(), mgr.GetRESTMapper(), kinds, o.Policy), rights: &asker{reviews}, clock: o.Clock, lag: lag,
		changes: changed, watches: watches, known: map[types.NamespacedName]known{},
	}, nil
}

// Start implements source.Source: Applications whose content changes go to queue until ctx ends.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	return s.watches.Start(ctx, queue)
}

// Observe returns what an Application with resources selects, if the user who chose that may still place it. It reads when something has
// changed, and otherwise returns what was read before, without parts. It returns nil while objects change, unless urgent is true, and while
// others read. again is when another pass has to call it; 0 if the source requests that pass. A *Problem says why content cannot be taken.
func (s *Source) Observe(ctx context.Context, app *shipper.Application, urgent bool) (out *Content, again time.Duration, err error) {
	key := client.ObjectKeyFromObject(app)
	if wait := s.changes.wait(key); wait > 0 && !urgent {
		s.slots.leave(key)
		return nil, wait, nil
	}
	print, err := fingerprint(app)
	if err != nil {
		return nil, 0, err
	}
	if !s.changes.has(key) {
		if k, ok := s.remembered(key, print); ok {
			s.slots.leave(key)
			return k.result(s.clock.Now())
		}
	}
	release, ok := s.slots.acquire(key)
	if !ok {
		return nil, busyDelay, nil
	}
	defer release()
	first, changed := s.changes.take(key)
	s.forget(key) // a pass that fails leaves nothing to compare with
	read, err := s.take(ctx, app)
	if read != nil {
		read.first = first
	}
	k := known{fingerprint: print, content: read.withoutParts(), problem: ProblemOf(app, err)}
	switch {
	case err == nil:
	case k.problem == nil || k.problem.Passing():
		if changed {
			s.changes.add(key)
		}
		return nil, 0, or(k.problem, err)
	case k.problem.Recheck() > 0:
		k.until = s.clock.Now().Add(k.problem.Recheck())
	}
	s.mu.Lock()
	s.known[key] = k
	s.mu.Unlock()
	if err == nil {
		return read, 0, nil
	}
	return k.result(s.clock.Now())
}

// or returns p, or err if p is nil.
func or(p *Problem, err error) error {
	if p != nil {
		return p
	}
	return err
}

// result is what Observe returns.
func (k known) result(now time.Time) (*Content, time.Duration, error) {
	var again time.Duration
	if !k.until.IsZero() {
		again = max(k.until.Sub(now), time.Second)
	}
	return k.content, again, or(k.problem, nil)
}

// remembered is what was read for an Application that has not changed since.
func (s *Source) remembered(key types.NamespacedName, fingerprint string) (known, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[key]
	return k, ok && k.fingerprint == fingerprint && (k.until.IsZero() || s.clock.Now().Before(k.until))
}

func (s *Source) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

// Parts are those of content. Content that was read by an earlier pass is read again; the error is a conflict if it has changed.
func (s *Source) Parts(ctx context.Context, app *shipper.Application, c *Content) ([]objects.Part, error) {
	if c.parts != nil {
		return c.parts, nil
	}
	s.forget(client.ObjectKeyFromObject(app))
	again, _, err := s.Observe(ctx, app, true)
	if err != nil {
		return nil, err
	}
	if again == nil || again.Digest != c.Digest { // nil: others read
		return nil, errChanged(app)
	}
	return again.parts, nil
}

// Released records how long a change took to become a Release.
func (s *Source) Released(c *Content) {
	if !c.first.IsZero() {
		s.lag.Observe(s.clock.Since(c.first).Seconds())
	}
}

// Rest ends the watches of an Application that does not follow changes.
func (s *Source) Rest(ctx context.Context, app types.NamespacedName) {
	s.watches.set(ctx, app, nil, nil)
	s.slots.leave(app)
}

// Forget ends the watches of an Application, and what is in memory of it.
func (s *Source) Forget(ctx context.Context, app types.NamespacedName) {
	s.watches.set(ctx, app, nil, nil)
	s.slots.leave(app)
	s.changes.take(app)
	s.forget(app)
}

// Changed makes the next pass of an Application read its content again.
func (s *Source) Changed(app types.NamespacedName) { s.changes.add(app) }

// take reads what an Application selects, if its user may place it. It starts the watches before it reads, so that no change is lost
// between. With follow OnRefresh there are none.
func (s *Source) take(ctx context.Context, app *shipper.Application) (*Content, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	key, asked := client.ObjectKeyFromObject(app), answers{}
	watch := func(list []interest) {
		if app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh {
			s.watches.set(ctx, key, list, asked)
		}
	}
	queries, selected, err := s.reader.queries(app)
	if err != nil {
		watch([]interest{{collection: collection{resource: definitions}}})
		return nil, err
	}
	// Content is kept where those who may read the Application's namespace see it: nothing of it is read before.
	if err := s.rights.permit(ctx, app, rights.ToPlace(app.Namespace, selected)); err != nil {
		return nil, err
	}
	watch(append(s.reader.interests(queries, nil), s.watches.known(key)...))
	content, found, err := s.read(ctx, queries)
	if found != nil {
		watch(found)
	}
	return content, err
}

// read makes content of what queries select, and returns what is to be watched; nil if that is not known.
func (s *Source) read(ctx context.Context, queries []query) (*Content, []interest, error) {
	all, err := s.reader.read(ctx, queries)
	if all == nil {
		return nil, nil, err
	}
	found := s.reader.interests(queries, all)
	if err != nil {
		return nil, found, err
	}
	content, err := planContent(all, s.reader.policy, s.reader.scope)
	return content, found, err
}

// fingerprint is a hash of what a result depends on in an Application. With follow OnRefresh nothing is watched, and each template is read.
func fingerprint(app *shipper.Application) (string, error) {
	r, template := app.Spec.Template.Resources, shipper.ReleaseEnvironment{}
	if r.Follow == shipper.FollowOnRefresh {
		template = app.Spec.Template
	}
	return sum([]any{app.UID, r.Select, r.Follow, app.Annotations[shipper.AppResourcesRefreshAnnotation],
		app.Annotations[shipper.AppSelectedByAnnotation], template})
}
