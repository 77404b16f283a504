// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

// line is a connection that reports its closing.
type line struct {
	net.Conn

	name, from string
	closed     *[]string
}

func (l *line) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(l.from), Port: 1}
}

func (l *line) Close() error {
	*l.closed = append(*l.closed, l.name)
	return nil
}

// TestTheAddressWithTheMostConnectionsLosesOne opens connections, answers some requests, and checks which ones are closed.
func TestTheAddressWithTheMostConnectionsLosesOne(t *testing.T) {
	const a, b, c = "10.0.0.1", "10.0.0.2", "10.0.0.3"
	type act struct{ do, name, from string }
	open := func(name, from string) act { return act{"open", name, from} }
	answer := func(name string) act { return act{"answer", name, ""} }
	judge := func(name string) act { return act{"judge", name, ""} }
	end := func(name string) act { return act{"end", name, ""} }
	for sentence, tc := range map[string]struct {
		acts []act
		want []string
	}{
		"none while there is room": {[]act{open("1", a), open("2", a), open("3", a), open("4", b), open("5", b)}, nil},
		"the oldest of a full address": {
			[]act{open("1", b), open("2", a), open("3", a), open("4", a), open("5", a)},
			[]string{"2"},
		},
		"rather one that had no answer": {
			[]act{open("1", a), open("2", a), answer("1"), open("3", a), open("4", a)},
			[]string{"2"},
		},
		"but not the one that has just come, before those that idle": {
			[]act{open("1", a), open("2", a), answer("2"), answer("1"), open("3", a), open("4", a)},
			[]string{"2"},
		},
		"or the one answered longest ago": {
			[]act{open("1", a), open("2", a), open("3", a), answer("2"), answer("1"), answer("3"), open("4", a)},
			[]string{"2"},
		},
		"none that a review of is judged": {
			[]act{open("1", a), open("2", a), open("3", a), judge("1"), answer("2"), answer("3"), open("4", a)},
			[]string{"2"},
		},
		"but where there is no other": {
			[]act{open("1", a), open("2", a), open("3", a), judge("1"), judge("2"), judge("3"), open("4", a)},
			[]string{"1"},
		},
		"of the address with the most": {
			[]act{open("1", c), open("2", a), open("3", a), open("4", a), open("5", b), open("6", b)}, []string{"2"},
		},
		"one that ended counts no more": {
			[]act{open("1", a), open("2", a), open("3", a), end("1"), open("4", a), end("2"), end("2"), open("5", a)}, nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			now := testclock.NewFakePassiveClock(time.Unix(1000, 0))
			all := NewConnections(now)
			all.most, all.ofAddress = 5, 3
			server := &http.Server{}
			all.Bound(server)
			lines, contexts := map[string]*line{}, map[string]context.Context{}
			var closed []string
			for i, act := range tc.acts {
				now.SetTime(time.Unix(int64(1000+i), 0))
				switch act.do {
				case "open":
					lines[act.name] = &line{name: act.name, from: act.from, closed: &closed}
					contexts[act.name] = server.ConnContext(t.Context(), lines[act.name])
				case "answer":
					judging(contexts[act.name], now)()
				case "judge":
					judging(contexts[act.name], now)
				case "end":
					server.ConnState(lines[act.name], http.StateClosed)
				}
			}
			if diff := cmp.Diff(tc.want, closed); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
		})
	}
}
