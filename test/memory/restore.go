// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Version is the version of the last write.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Restore puts all objects back to what they were after the write of a version, as a restore of etcd does: later versions are given out
// again, and what clients have cached of them is void. Watches end. Controllers look at what is there again.
func (s *Server) Restore(version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[string]*table{}
	for id, t := range s.tables {
		var known bool
		if before[id], known = t.at(version); !known || version > s.version {
			return fmt.Errorf("restoring version %d: it is not remembered", version)
		}
	}
	s.version, s.uids, s.dependents = version, map[string]int{}, map[string]map[reference]bool{}
	now := s.tables
	s.tables = before
	for id, t := range before {
		old := now[id]
		t.first, t.forgot = old.first, old.forgot
		for _, c := range old.log {
			if c.version <= version {
				t.log = append(t.log, c)
			}
		}
		old.ended = true
		close(old.changed)
		for _, in := range t.objects {
			for _, o := range in {
				s.own(t, o)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		s.restored(now[id], before[id])
	}
	return nil
}

// restored makes known what is different in a table. The server's mutex is held.
func (s *Server) restored(now, before *table) {
	for _, o := range now.list("", selector{}) {
		if before.get(o.namespace, o.name) == nil {
			s.noted(before, o, true)
		}
	}
	for _, o := range before.list("", selector{}) {
		if is := now.get(o.namespace, o.name); is == nil || !bytes.Equal(is.raw, o.raw) {
			s.noted(before, o, false)
		}
		s.wake(before.kind, o, false)
	}
}
