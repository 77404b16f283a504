// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// env is a simulated management cluster with its own clock: replicas that rotate independently, and API servers that see
// webhook configurations some time after they are written.
type env struct {
	t      *testing.T
	dice   *rand.Rand
	policy policy
	now    time.Time

	data           map[string][]byte // of the Secret
	version        int               // of the Secret
	configurations []*simulated
	replicas       []*replica
	writes         map[act]int
	news           bool // since the last check
}

// simulated is a webhook configuration with one webhook.
type simulated struct {
	text    []byte
	version int
	history []written // the bundles that API servers may still use, the oldest first
}

// written is a bundle that was replaced at a time.
type written struct {
	bundle []*x509.Certificate
	until  time.Time
}

// replica is one webhook. Its pass takes three moments, between which others act.
type replica struct {
	rotation
	memory  *x509.Certificate
	loadAt  time.Time // when it loads the present Secret; zero when it has
	moment  int
	read    observed
	texts   [][]byte
	version []int // of the Secret, then of the configurations, as they were read
}

// The delays of watches. API servers are faster than authorities settle, replicas faster than certificates end.
const (
	serverLag  = 50 * time.Second
	replicaLag = 15 * time.Minute
	tick       = 5 * time.Second
)

func newEnv(t *testing.T, seed uint64, replicas int) *env {
	w := &env{
		t: t, dice: rand.New(rand.NewPCG(seed, seed)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), writes: map[act]int{},
		policy:         policy{Lifetimes{Authority: 3 * time.Hour, Certificate: time.Hour}, []string{"shipper-webhook.shipper-system.svc"}},
		configurations: []*simulated{{}, {}},
	}
	for range replicas {
		w.replicas = append(w.replicas, &replica{})
	}
	return w
}

// forward advances the time: watches deliver, and one replica does the next moment of its pass.
func (w *env) forward() {
	w.now = w.now.Add(tick)
	for _, r := range w.replicas {
		if !r.loadAt.IsZero() && !w.now.Before(r.loadAt) {
			r.memory, r.loadAt, w.news = read(w.data).leaf(), time.Time{}, true
		}
	}
	w.pass(w.replicas[w.dice.IntN(len(w.replicas))])
	if w.news || w.now.Minute() == 0 {
		w.check()
	}
}

// pass does the next moment of r's pass, in the order in which Reconcile reads and writes.
func (w *env) pass(r *replica) {
	switch r.moment++; r.moment {
	case 1:
		r.read, r.texts, r.version = observed{}, nil, nil
		for _, c := range w.configurations {
			r.read.bundles = append(r.read.bundles, certificates(c.text))
			r.texts, r.version = append(r.texts, c.text), append(r.version, c.version)
		}
	case 2:
		r.read.contents, r.read.memory = read(w.data), r.memory
		r.version = append(r.version, w.version)
		s := &seen{observed: r.read}
		if s.next != nil && r.trusted != nil && r.trusted.Equal(s.next.certificate) {
			s.trustedSince = r.since
		}
		r.note(s, w.now)
		r.read = s.observed
	default:
		todo := next(r.read, w.policy, w.now)
		r.write(w, todo, r.moment-3)
		if todo.act != publish && todo.act != withdraw || r.moment == 2+len(w.configurations) {
			r.moment = 0
		}
	}
}

// write does todo, for the configurations only at an index, unless another write came first.
func (r *replica) write(w *env, todo step, index int) {
	switch todo.act {
	case rest:
	case publish, withdraw:
		c := w.configurations[index]
		want := r.read.wanted(certificates(r.texts[index]), todo.act, w.now)
		if c.version != r.version[index] || same(certificates(r.texts[index]), want) {
			return
		}
		c.history = append(c.history, written{certificates(c.text), w.now.Add(serverLag)})
		c.text, c.version, w.news = encode(want...), c.version+1, true
		w.writes[todo.act]++
	default:
		if w.version != r.version[len(w.configurations)] {
			return
		}
		e, err := editOf(todo.act, r.read, w.policy, w.now)
		if err != nil {
			w.t.Fatal(err)
		}
		w.put(e.applyTo(w.data))
		w.writes[todo.act]++
	}
}

// put changes the Secret. Every replica will load it after a random delay.
func (w *env) put(data map[string][]byte) {
	w.data, w.version = data, w.version+1
	for _, r := range w.replicas {
		if read(data).serving != nil && r.loadAt.IsZero() {
			r.loadAt = w.now.Add(time.Duration(w.dice.Int64N(int64(replicaLag))))
		}
	}
}

// crash ends a replica at any moment, and starts it again.
func (w *env) crash(r *replica) {
	*r = replica{}
	r.memory, w.news = read(w.data).leaf(), true
}

// check fails unless every API server accepts the serving certificate of every replica, with any bundle that it may have.
func (w *env) check() {
	w.t.Helper()
	w.news = false
	for _, c := range w.configurations {
		c.history = slices.DeleteFunc(c.history, func(b written) bool { return !w.now.Before(b.until) })
		for _, bundle := range append(c.history, written{bundle: certificates(c.text)}) {
			for i, r := range w.replicas {
				if r.memory != nil && !(observed{bundles: [][]*x509.Certificate{bundle.bundle}}).serves(r.memory, w.now) {
					w.t.Fatalf("at %s replica %d serves what ends at %s and is not accepted; writes so far: %v",
						w.now, i, r.memory.NotAfter, w.writes)
				}
			}
		}
	}
}

// settled advances the time until all replicas serve the certificate in the Secret and no rotation is in progress.
func (w *env) settled() {
	w.t.Helper()
	for range 1000 {
		w.forward()
		c := read(w.data)
		if c.serving != nil && c.next == nil && !slices.ContainsFunc(w.replicas, func(r *replica) bool {
			return r.memory == nil || !r.loadAt.IsZero()
		}) {
			return
		}
	}
	w.t.Fatalf("nothing settles; writes so far: %v", w.writes)
}

// serveFirst runs until the first requests can arrive.
func (w *env) serveFirst() {
	for _, r := range w.replicas { // not checked: API servers send no requests to a replica before it is ready
		for range 100 {
			w.pass(r)
		}
		r.memory, r.loadAt = read(w.data).leaf(), time.Time{}
	}
	for _, c := range w.configurations {
		c.history = nil
	}
	w.check()
}

func TestNoRequestEverFails(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, seed, 3)
			w.serveFirst()
			for range 12 * 60 * 12 { // twelve hours, four lives of an authority
				if w.dice.IntN(80) == 0 {
					w.crash(w.replicas[w.dice.IntN(len(w.replicas))])
				}
				w.forward()
			}
			if w.writes[promote] < 5 || w.writes[renew] < 8 || w.writes[forget] < 4 || w.writes[withdraw] < 8 {
				t.Errorf("too little was rotated: %v", w.writes)
			}
			if w.writes[renew]+w.writes[promote] > 30 || w.writes[prepare] > w.writes[promote]+1 {
				t.Errorf("too much was rotated: %v", w.writes)
			}
		})
	}
}

func TestAnAdministratorMayTakeAnythingOutOfTheSecret(t *testing.T) {
	for sentence, keys := range map[string][]string{
		"the certificate":              {certKey, keyKey},
		"the key of the authority":     {caKeyKey},
		"the authority":                {caKey, caKeyKey},
		"certificate and authority":    {certKey, keyKey, caKey, caKeyKey},
		"everything":                   {certKey, keyKey, caKey, caKeyKey, nextKey, nextKeyKey, previousKey, outgoingKey},
		"the certificate, not its key": {certKey},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				w := newEnv(t, seed, 2)
				w.serveFirst()
				for range 2 {
					w.settled()
					before := read(w.data)
					data := maps.Clone(w.data)
					for _, key := range keys {
						delete(data, key)
					}
					w.put(data)
					w.settled()
					if after := read(w.data); after.leaf().Equal(before.leaf()) {
						t.Fatal("the certificate is as before")
					} else if slices.Contains(keys, caKeyKey) == after.current.certificate.Equal(before.current.certificate) {
						t.Fatalf("the authority was replaced: %v", !after.current.certificate.Equal(before.current.certificate))
					}
				}
			}
		})
	}
}
