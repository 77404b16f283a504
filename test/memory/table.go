// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
)

// remembered is how many changes of a kind are kept for watches that begin in the past or lag behind.
const remembered = 50_000

// table is all objects of a kind.
type table struct {
	kind    Kind
	objects map[string]map[string]*object // by namespace and name
	log     []change
	first   int           // the number of the first change in log
	changed chan struct{} // closed with the next change
}

// object is one as it is kept.
type object struct {
	raw     []byte
	version uint64
	labels  map[string]string
	uid     string
	owners  []string
}

// change is one write.
type change struct {
	kind            string // ADDED, MODIFIED or DELETED
	version         uint64
	namespace, name string
	raw             []byte
	before, after   map[string]string // labels; nil when there was no object, or is none any more
}

func newTable(k Kind) *table {
	return &table{kind: k, objects: map[string]map[string]*object{}, changed: make(chan struct{})}
}

func (t *table) get(namespace, name string) *object { return t.objects[namespace][name] }

// list is all objects that a selector takes, by name. The server's mutex is held.
func (t *table) list(namespace string, wanted selector) []*object {
	var out []*object
	take := func(in map[string]*object) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if wanted.takes(name, in[name].labels) {
				out = append(out, in[name])
			}
		}
	}
	if namespace != "" {
		take(t.objects[namespace])
		return out
	}
	for _, in := range t.objects {
		take(in)
	}
	return out
}

// note makes a change known to watches. The server's mutex is held.
func (t *table) note(c change) {
	if t.log = append(t.log, c); len(t.log) > 2*remembered {
		t.first += remembered
		t.log = slices.Clone(t.log[remembered:])
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// selector is what a request wants of a kind.
type selector struct {
	labels labels.Selector
	name   string // empty: any
}

func (s selector) takes(name string, of map[string]string) bool {
	return (s.name == "" || s.name == name) && s.labels.Matches(labels.Set(of))
}

// put stores an object and sends its event; u has no resource version yet, or an old one. The server's mutex is held.
func (s *Server) put(t *table, u *unstructured.Unstructured) *object {
	s.version++
	u.SetResourceVersion(strconv.FormatUint(s.version, 10))
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // it was read from JSON
	}
	o := &object{raw: raw, version: s.version, labels: u.GetLabels(), uid: string(u.GetUID())}
	if o.labels == nil {
		o.labels = map[string]string{}
	}
	for _, owner := range u.GetOwnerReferences() {
		o.owners = append(o.owners, string(owner.UID))
	}
	namespace, name := u.GetNamespace(), u.GetName()
	if t.objects[namespace] == nil {
		t.objects[namespace] = map[string]*object{}
	}
	c := change{kind: "ADDED", version: s.version, namespace: namespace, name: name, raw: raw, after: o.labels}
	if old := t.objects[namespace][name]; old != nil {
		c.kind, c.before = "MODIFIED", old.labels
		s.disown(t, old, namespace, name)
	}
	t.objects[namespace][name] = o
	for _, owner := range o.owners {
		if s.dependents[owner] == nil {
			s.dependents[owner] = map[reference]bool{}
		}
		s.dependents[owner][reference{t.kind.ID(), namespace, name}] = true
	}
	t.note(c)
	if s.options.Noted != nil {
		s.options.Noted(t.kind.ID(), u, false)
	}
	s.wake(t.kind, u)
	return o
}

// remove takes an object away for good, and what it owned. The server's mutex is held.
func (s *Server) remove(t *table, u *unstructured.Unstructured) {
	namespace, name := u.GetNamespace(), u.GetName()
	old := t.objects[namespace][name]
	delete(t.objects[namespace], name)
	s.disown(t, old, namespace, name)
	s.version++
	u.SetResourceVersion(strconv.FormatUint(s.version, 10))
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	t.note(change{kind: "DELETED", version: s.version, namespace: namespace, name: name, raw: raw, before: old.labels})
	if s.options.Noted != nil {
		s.options.Noted(t.kind.ID(), u, true)
	}
	s.wake(t.kind, u)
	if len(s.dependents[old.uid]) > 0 {
		s.later("collect "+old.uid, 0, func() { s.collect(old.uid) })
	}
}

// disown forgets whose an object is.
func (s *Server) disown(t *table, o *object, namespace, name string) {
	for _, owner := range o.owners {
		delete(s.dependents[owner], reference{t.kind.ID(), namespace, name})
		if len(s.dependents[owner]) == 0 {
			delete(s.dependents, owner)
		}
	}
}

// read is an object as it can be changed.
func (o *object) read() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(o.raw, &u.Object); err != nil {
		panic(err) // it was written by put
	}
	return u
}
