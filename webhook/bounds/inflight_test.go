// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheLargestShareIsCancelledFirst(t *testing.T) {
	type has struct {
		name, address, namespace string
		at, memory               int // memory in units of overhead
		judged                   bool
	}
	for sentence, tc := range map[string]struct {
		there []has
		want  []string
	}{
		"none while there is room": {[]has{{"a", "1", "", 0, 50, false}, {"b", "1", "", 1, 50, false}}, nil},
		"of the address with the most": {
			[]has{{"a", "1", "", 0, 40, false}, {"b", "2", "", 1, 30, false}, {"c", "2", "", 2, 30, false}, {"d", "1", "", 3, 1, false}},
			[]string{"b"},
		},
		"of the namespace with the most": {
			[]has{{"a", "1", "x", 0, 40, false}, {"b", "1", "y", 1, 30, false}, {"c", "1", "y", 2, 31, false}}, []string{"b"},
		},
		"the oldest": {[]has{{"b", "1", "", 1, 40, false}, {"a", "1", "", 0, 40, false}, {"c", "1", "", 2, 40, false}}, []string{"a"}},
		"none that is being judged": {
			[]has{{"a", "1", "", 0, 60, true}, {"b", "2", "", 1, 30, false}, {"c", "1", "", 2, 20, false}}, []string{"c"},
		},
		"as many as it takes": {
			[]has{{"a", "1", "", 0, 30, false}, {"b", "1", "", 1, 30, false}, {"c", "1", "", 2, 90, false}}, []string{"a", "b"},
		},
		"the new one": {[]has{{"a", "1", "", 0, 90, true}, {"b", "1", "", 1, 20, false}}, []string{"b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := newInFlight(100 * overhead)
			var got []string
			for _, h := range tc.there {
				r := &review{address: h.address, began: time.Unix(int64(h.at), 0), end: func(error) { got = append(got, h.name) }}
				u.add(r)
				u.arrived(r, h.namespace)
				if h.judged {
					u.judge(r)
				}
				u.grow(r, (h.memory-1)*overhead)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cancelled (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnsweredReviewsFreeTheirMemory(t *testing.T) {
	u := newInFlight(overhead + 10)
	for range 3 {
		r := &review{end: func(error) { t.Error("it was given up") }}
		u.add(r)
		u.arrived(r, "shop")
		u.grow(r, 10)
		if !u.judge(r) {
			t.Error("it is not to be judged")
		}
		u.remove(r)
		u.remove(r)
	}
	if u.memory != 0 || len(u.addresses)+len(u.parties) != 0 {
		t.Errorf("%d bytes are left, and %v, %v", u.memory, u.addresses, u.parties)
	}
	gone := &review{end: func(error) {}}
	u.add(gone)
	u.grow(gone, 11)
	if u.judge(gone) {
		t.Error("a review that was given up is to be judged")
	}
}
