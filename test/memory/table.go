// SPDX-License-Identifier: Apache-2.0

package memory

import (
	stdjson "encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// remembered is how many changes of a kind are kept for watches and pages that begin in the past.
const remembered = 50_000

// table is all objects of a kind.
type table struct {
	kind    Kind
	objects map[string]map[string]*object // by namespace and name
	log     []change
	first   int           // the number of the first change in log
	forgot  uint64        // the version of the last change that is not in log any more
	changed chan struct{} // closed with the next change
	ended   bool          // another table is in its place
}

// object is one as it is stored. Nothing in it is changed.
type object struct {
	live            runtime.Object // *unstructured.Unstructured for custom resources
	raw             []byte         // as JSON
	version         uint64
	namespace, name string
	uid             string
	owners          []string
	since           time.Time // its creation
}

// change is one write.
type change struct {
	version       uint64
	before, after *object // nil when there was none, or is none any more
}

// of is the object that a change is about.
func (c change) of() *object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

func newTable(k Kind) *table {
	return &table{kind: k, objects: map[string]map[string]*object{}, changed: make(chan struct{})}
}

func (t *table) get(namespace, name string) *object { return t.objects[namespace][name] }

// list returns the selected objects, by key. The server's mutex is held.
func (t *table) list(namespace string, wanted selector) []*object {
	var out []*object
	namespaces := []string{namespace}
	if namespace == "" {
		namespaces = slices.Sorted(maps.Keys(t.objects))
	}
	for _, ns := range namespaces {
		in := t.objects[ns]
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if t.takes(wanted, in[name]) {
				out = append(out, in[name])
			}
		}
	}
	return out
}

// at returns the table as it was at a version; false if that is not remembered. The server's mutex is held.
func (t *table) at(version uint64) (*table, bool) {
	if version < t.forgot {
		return nil, false
	}
	out := newTable(t.kind)
	for ns, in := range t.objects {
		out.objects[ns] = maps.Clone(in)
	}
	for i := len(t.log) - 1; i >= 0 && t.log[i].version > version; i-- {
		c := t.log[i]
		o := c.of()
		if c.before == nil {
			delete(out.objects[o.namespace], o.name)
			continue
		}
		out.objects[o.namespace][o.name] = c.before
	}
	return out, true
}

// note makes a change known to watches. The server's mutex is held.
func (t *table) note(c change) {
	if t.log = append(t.log, c); len(t.log) > 2*remembered {
		t.first += remembered
		t.forgot = t.log[remembered-1].version
		t.log = slices.Clone(t.log[remembered:])
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// selector is what a request selects. A nil part selects everything.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

func (t *table) takes(s selector, o *object) bool {
	if o == nil {
		return false
	}
	all := s.labels == nil || s.labels.Empty()
	if all && (s.fields == nil || s.fields.Empty()) {
		return true
	}
	m, err := meta.Accessor(o.live)
	if err != nil || !all && !s.labels.Matches(labels.Set(m.GetLabels())) {
		return false
	}
	if s.fields == nil || s.fields.Empty() {
		return true
	}
	_, set, err := t.kind.attributes(o.live)
	return err == nil && s.fields.Matches(set)
}

// encode returns an object as JSON, with its kind.
func (k Kind) encode(o runtime.Object) []byte {
	if u, ok := o.(*unstructured.Unstructured); ok {
		raw, err := json.Marshal(u.Object)
		if err != nil {
			panic(err) // it was read from JSON
		}
		return raw
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	raw, err := stdjson.Marshal(o)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return raw
}

// decode returns an object in the form that it is stored in.
func (k Kind) decode(u *unstructured.Unstructured) (runtime.Object, error) {
	u.SetGroupVersionKind(k.gvk())
	if k.custom() {
		return u, nil
	}
	o, err := builtin.New(k.gvk())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
	}
	return o, err
}

func versionString(v uint64) string { return strconv.FormatUint(v, 10) }

// put stores an object, which is not changed afterwards, and sends its event. The server's mutex is held.
func (s *Server) put(t *table, live runtime.Object) *object {
	m, err := meta.Accessor(live)
	if err != nil {
		panic(err) // all kinds have metadata
	}
	s.version++
	m.SetResourceVersion(versionString(s.version))
	o := &object{
		live: live, raw: t.kind.encode(live), version: s.version,
		namespace: m.GetNamespace(), name: m.GetName(), uid: string(m.GetUID()), since: time.Now(),
	}
	for _, owner := range m.GetOwnerReferences() {
		o.owners = append(o.owners, string(owner.UID))
	}
	if t.objects[o.namespace] == nil {
		t.objects[o.namespace] = map[string]*object{}
	}
	before := t.get(o.namespace, o.name)
	if before != nil {
		o.since = before.since
		s.disown(t, before)
	}
	t.objects[o.namespace][o.name] = o
	s.own(t, o)
	t.note(change{version: s.version, before: before, after: o})
	s.noted(t, o, false)
	s.wake(t.kind, o, false)
	return o
}

// remove removes an object. The server's mutex is held.
func (s *Server) remove(t *table, o *object) {
	delete(t.objects[o.namespace], o.name)
	s.disown(t, o)
	s.version++
	t.note(change{version: s.version, before: o})
	s.noted(t, o, true)
	s.wake(t.kind, o, true)
}

// noted calls Options.Noted.
func (s *Server) noted(t *table, o *object, gone bool) {
	if s.options.Noted == nil {
		return
	}
	u, err := t.kind.unstructured(o.live)
	if err != nil {
		panic(err) // it is stored
	}
	s.options.Noted(t.kind.ID(), u, gone)
}

// own keeps an object and its owners.
func (s *Server) own(t *table, o *object) {
	s.uids[o.uid]++
	for _, owner := range o.owners {
		if s.dependents[owner] == nil {
			s.dependents[owner] = map[reference]bool{}
		}
		s.dependents[owner][reference{t.kind.ID(), o.namespace, o.name}] = true
	}
}

// disown forgets an object and its owners.
func (s *Server) disown(t *table, o *object) {
	if s.uids[o.uid]--; s.uids[o.uid] <= 0 {
		delete(s.uids, o.uid)
	}
	for _, owner := range o.owners {
		delete(s.dependents[owner], reference{t.kind.ID(), o.namespace, o.name})
		if len(s.dependents[owner]) == 0 {
			delete(s.dependents, owner)
		}
	}
}

// read returns a copy of an object.
func (o *object) read() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(o.raw, &u.Object); err != nil {
		panic(err) // put wrote it
	}
	return u
}

// at returns an object as JSON, with another version.
func (o *object) at(version uint64) []byte {
	u := o.read()
	u.SetResourceVersion(versionString(version))
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return raw
}
