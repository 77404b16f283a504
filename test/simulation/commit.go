// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Death is how a write ends the life of the process that makes it.
type Death string

// The deaths.
const (
	// AnswerLost kills the process when the write took effect, before it reads the answer.
	AnswerLost Death = "the answer lost"
	// NextLost kills it at the write after that one, which has no effect.
	NextLost Death = "the next write lost"
)

// bothDeaths are all of them.
var bothDeaths = []Death{AnswerLost, NextLost}

// kills say which writes of reconcilers end a life.
type kills struct {
	every   bool
	numbers map[int]bool    // counted from 1 after the first `before` writes
	kinds   map[string]bool // of writes that have ended a life; nil: kinds do not matter
	before  int
	how     Death
}

// hit reports whether the n-th write ends a life.
func (k kills) hit(n int, r *http.Request) bool {
	if kind := kindOfWrite(r); k.kinds != nil && !k.kinds[kind] {
		k.kinds[kind] = true
		return true
	}
	return k.every || k.numbers[n-k.before]
}

// kindOfWrite is what a request does to what, regardless of the names of clusters and objects.
func kindOfWrite(r *http.Request) string {
	where, path := "in a cluster", strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Host == management {
		where = management
	}
	prefix := 2 // api/v1
	if path[0] == "apis" {
		prefix = 3
	}
	path = path[min(prefix, len(path)):]
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if len(path) > 1 {
		path = slices.Delete(path, 1, 2)
	}
	return strings.Join([]string{where, r.Method, strings.Join(path, "/"), r.URL.Query().Get("fieldManager")}, " ")
}

// sent is a request under way.
type sent struct {
	client *Client
	at     time.Time
	held   string // holder of the Lease when it was sent
}

type sentKey struct{}

// sentBy is who sends a request; nil for an API server itself.
func sentBy(ctx context.Context) *sent {
	s, _ := ctx.Value(sentKey{}).(*sent)
	return s
}

// process is who sends; empty for an API server itself.
func (s *sent) process() string {
	if s == nil {
		return ""
	}
	return s.client.process
}

// change is one that an API server has stored.
type change struct {
	host, kind string // kind is memory.Kind.ID
	by         *sent
	at         time.Time
	// old is nil when the object was created, and object when it was removed.
	old, object *unstructured.Unstructured
}

// any returns the object, or what it was.
func (c change) any() *unstructured.Unstructured {
	if c.object != nil {
		return c.object
	}
	return c.old
}

// host is an API server's view of who writes, and what it stores, for the laws.
type host struct {
	name    string
	by      *sent // under the server's mutex
	changed func(change)

	mu      sync.Mutex
	objects map[string]map[string]*unstructured.Unstructured // by memory.Kind.ID and namespace/name; none of them is changed
	created map[string][]string                              // names of all objects that were ever created, by kind
}

// made are the names of the objects of a kind that were created so far, those that are gone too.
func (h *host) made(kind string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.created[kind])
}

// all are the objects of a kind, in the order of their names.
func (h *host) all(kind string) (out []*unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(h.objects[kind])) {
		out = append(out, h.objects[kind][key])
	}
	return out
}

// get is an object; nil if there is none.
func (h *host) get(kind, namespace, name string) *unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[kind][namespace+"/"+name]
}

// read converts an object to its type; it is false if there is none.
func (h *host) read(kind, namespace, name string, into any) bool {
	return convert(h.get(kind, namespace, name), into)
}

// convert converts an object to its type; it is false without an object. What it sets shares its parts with others: nothing writes to them.
func convert(u *unstructured.Unstructured, into any) bool {
	if u == nil {
		return false
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(converted.as(u, reflect.TypeOf(into).Elem())).Elem())
	return true
}

// conversions are objects by what they were converted from. The laws read the same few objects at each change.
type conversions struct {
	mu    sync.Mutex
	known map[*unstructured.Unstructured]any // pointers to their types
}

// converted are shared by all runs: objects do not change.
var converted = conversions{known: map[*unstructured.Unstructured]any{}}

// mostConverted bounds them: those of a few runs.
const mostConverted = 1000

// as returns a pointer to an object of a type.
func (c *conversions) as(u *unstructured.Unstructured, t reflect.Type) any {
	c.mu.Lock()
	known := c.known[u]
	c.mu.Unlock()
	if known != nil && reflect.TypeOf(known).Elem() == t {
		return known
	}
	into := reflect.New(t).Interface()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		panic(err) // the API server has stored it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostConverted {
		clear(c.known)
	}
	c.known[u] = into
	return into
}

// enter is memory.Options.Enter.
func (h *host) enter(r *http.Request) (func(bool), error) {
	s := sentBy(r.Context())
	if s == nil || !isReconciler(s.process()) || !counts(r) {
		h.by = s
		return func(bool) { h.by = nil }, nil
	}
	c := s.client
	c.mu.Lock()
	if c.dying {
		c.die()
	}
	if c.dead {
		c.mu.Unlock()
		return nil, errKilled
	}
	h.by = s
	return func(done bool) {
		h.by = nil
		defer c.mu.Unlock()
		if done {
			c.wrote(r)
		}
	}, nil
}

// wrote counts a write, and ends the life if it is one to end it. The client's mutex is held.
func (c *Client) wrote(r *http.Request) {
	c.Network.mu.Lock()
	defer c.Network.mu.Unlock()
	c.writes++
	c.history.wrote(c.process, r, c.writes)
	if !c.kills.hit(c.writes, r) {
		return
	}
	c.lives++
	if c.kills.how == NextLost {
		c.dying = true
		return
	}
	c.die()
}

// counts reports whether a write matters to what is rolled out: Leases, Events and access reviews do not.
func counts(r *http.Request) bool {
	for _, other := range []string{"/coordination.k8s.io/", "/events", "/authorization.k8s.io/", "/authentication.k8s.io/"} {
		if strings.Contains(r.URL.Path, other) {
			return false
		}
	}
	return true
}

// noted is memory.Options.Noted.
func (h *host) noted(kind string, u *unstructured.Unstructured, gone bool) {
	c := change{host: h.name, kind: kind, by: h.by, at: time.Now()}
	if !gone {
		c.object = u
	}
	h.store(&c, u.GetNamespace()+"/"+u.GetName())
	h.changed(c)
}

// store keeps what a change leaves, and adds what was there before.
func (h *host) store(c *change, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.objects[c.kind]
	if all == nil {
		all = map[string]*unstructured.Unstructured{}
		h.objects[c.kind] = all
	}
	if c.old = all[key]; c.old == nil {
		h.created[c.kind] = append(h.created[c.kind], c.any().GetName())
	}
	if c.object == nil {
		delete(all, key)
	} else {
		all[key] = c.object
	}
}
