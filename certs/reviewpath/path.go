// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fieldOwner owns the keys of the path in the Secret, and the paths in the webhook configurations.
const fieldOwner = client.FieldOwner("shipper-certs")

// Path keeps the path of reviews. Every replica runs one; the resource version makes the API server refuse all writes but one.
type Path struct {
	ctx      context.Context //nolint:containedctx // of reads for several requests, which outlive each of these
	secret   types.NamespacedName
	name     string // of the webhook configurations
	lifetime time.Duration

	cached client.Reader
	api    client.Reader // reads from the API server
	writer client.Writer
	clock  clock.Clock
	log    logr.Logger

	// ready is set once API servers find the webhooks by the configurations.
	ready atomic.Bool
	// view is what is answered, nil before anything was read.
	view atomic.Pointer[view]
	// memory is of Reconcile alone.
	memory memory

	mu       sync.Mutex
	waiting  *reading // not begun; nil if there is none
	lastRead time.Time
}

// view is a set of tokens that are answered.
type view struct {
	// current are answered as long as this view is the newest one, before until a time.
	current []string
	before  map[string]time.Time
}

// has reports whether a token is answered. It compares in constant time.
func (v *view) has(token string, now time.Time) bool {
	found := 0
	for _, t := range v.current {
		found |= subtle.ConstantTimeCompare([]byte(t), []byte(token))
	}
	for t, until := range v.before {
		if now.Before(until) {
			found |= subtle.ConstantTimeCompare([]byte(t), []byte(token))
		}
	}
	return found == 1
}

// seen is the result of the reads of one pass.
type seen struct {
	observed
	secret         *corev1.Secret // nil when there is none
	configurations []configuration
}

// configuration is a webhook configuration.
type configuration struct {
	object client.Object
	// paths are the paths or URLs of its webhooks, empty if there is none; fields is where they are, hooks what their names call for.
	paths, fields, hooks []string
}

func (p *Path) observe(ctx context.Context, reader client.Reader) (*seen, error) {
	s := &seen{}
	validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	for _, o := range []client.Object{validating, mutating} {
		err := reader.Get(ctx, client.ObjectKey{Name: p.name}, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading webhook configuration %s: %w", p.name, err)
		}
		c := configuration{object: o}
		switch o {
		case validating:
			for i := range validating.Webhooks {
				c.add(i, validating.Webhooks[i].Name, &validating.Webhooks[i].ClientConfig)
			}
		case mutating:
			for i := range mutating.Webhooks {
				c.add(i, mutating.Webhooks[i].Name, &mutating.Webhooks[i].ClientConfig)
			}
		}
		s.configurations = append(s.configurations, c)
		for _, path := range c.paths {
			if path == "" {
				s.lacks = true
			} else if _, token, _ := Split(path); !slices.Contains(s.named, token) {
				s.named = append(s.named, token)
			}
		}
	}
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, p.secret, secret); err == nil {
		s.secret, s.record = secret, read(secret.Data)
	} else if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading secret %s: %w", p.secret, err)
	}
	return s, nil
}

// add adds the path of the webhook at an index.
func (c *configuration) add(i int, name string, to *admissionv1.WebhookClientConfig) {
	hook := HookOf(name)
	switch {
	case to.URL != nil:
		c.paths, c.fields = append(c.paths, *to.URL), append(c.fields, fmt.Sprintf("/webhooks/%d/clientConfig/url", i))
	case to.Service != nil && (hook != "" || to.Service.Path != nil):
		c.paths = append(c.paths, ptr.Deref(to.Service.Path, ""))
		c.fields = append(c.fields, fmt.Sprintf("/webhooks/%d/clientConfig/service/path", i))
	default:
		return // it is not Shipper's
	}
	c.hooks = append(c.hooks, hook)
}

// show answers what was seen from now on, and returns it.
func (p *Path) show(s *seen) *view {
	v := &view{current: slices.Clone(s.named), before: s.before}
	if s.token != "" {
		v.current = append(v.current, s.token)
	}
	p.view.Store(v)
	return v
}

var errNoPath = errors.New("the webhook configurations have no path yet")

// Ready is nil once the webhook configurations have had paths. It is a health check.
func (p *Path) Ready(*http.Request) error {
	if !p.ready.Load() {
		return errNoPath
	}
	return nil
}

// longest bounds the wait for a time: clocks are set, and machines sleep.
const longest = time.Hour

// Reconcile does the next write, if one is due.
func (p *Path) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := p.clock.Now()
	s, err := p.observe(ctx, p.cached)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.show(s)
	if !s.lacks {
		p.ready.Store(true)
	}
	switch plain := slices.Contains(s.named, ""); {
	case !plain:
		p.memory.plain = time.Time{}
	case p.memory.plain.IsZero():
		p.memory.plain = now
	}
	if due := next(s.observed, p.lifetime, p.memory, now); due.act == rest {
		return wait(due.again, now), nil
	}
	// Caches are not consistent with each other: decide from the API server's state before writing.
	if s, err = p.observe(ctx, p.api); err != nil {
		return reconcile.Result{}, err
	}
	due := next(s.observed, p.lifetime, p.memory, now)
	if due.act == rest {
		return wait(due.again, now), nil
	}
	if err := p.do(ctx, s, due, now); apierrors.IsConflict(err) {
		p.log.V(1).Info("Another writer was first", "act", due.act, "reason", err.Error())
	} else if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: time.Second}, nil // the watch usually is faster
}

// wait requeues at a time, at most longest from now.
func wait(again, now time.Time) reconcile.Result {
	return reconcile.Result{RequeueAfter: min(max(again.Sub(now), time.Millisecond), longest)}
}

// do does the writes of due.
func (p *Path) do(ctx context.Context, s *seen, due step, now time.Time) error {
	var err error
	switch {
	case due.act == publish:
		err = p.writeConfigurations(ctx, s, now)
	case s.secret == nil:
		// Only an apply can create an object that RBAC limits to its name.
		secret := corev1ac.Secret(p.secret.Name, p.secret.Namespace).
			WithLabels(map[string]string{"app.kubernetes.io/name": "shipper"})
		err = p.writer.Apply(ctx, secret, fieldOwner)
	default:
		changed := s.secret.DeepCopy()
		changed.Data = s.after(due.act, now).writeTo(s.secret.Data)
		err = p.writer.Patch(ctx, changed, client.MergeFromWithOptions(s.secret, client.MergeFromWithOptimisticLock{}), fieldOwner)
	}
	if err != nil {
		return fmt.Errorf("path of reviews: %s, for %s: %w", due.act, due.why, err)
	}
	p.log.Info("Changed the path of reviews", "act", due.act, "reason", due.why)
	return nil
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// writeConfigurations writes the token into every webhook, unless the configuration was written since it was read.
func (p *Path) writeConfigurations(ctx context.Context, s *seen, now time.Time) error {
	for _, c := range s.configurations {
		operations := []operation{{"replace", "/metadata/resourceVersion", c.object.GetResourceVersion()}}
		for i, path := range c.paths {
			if want := With(cmp.Or(path, c.hooks[i]), s.token); want != path {
				operations = append(operations, operation{"add", c.fields[i], want})
			}
		}
		if len(operations) == 1 {
			continue
		}
		text, err := json.Marshal(operations)
		if err != nil {
			return fmt.Errorf("encoding a patch: %w", err)
		}
		if err := p.writer.Patch(ctx, c.object, client.RawPatch(types.JSONPatchType, text), fieldOwner); err != nil {
			return err
		}
	}
	p.memory.published = now
	return nil
}
