// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// shown bounds the lines that are kept and printed beside the writes.
const shown = 200

// History is what happened in a run, with virtual times. It is safe for concurrent use.
type History struct {
	began time.Time

	mu     sync.Mutex
	lines  []line // a ring, in the order of number
	number int
	writes []line
	before []line // those up to the first broken law
}

// lawLine is what lines of broken laws are.
const lawLine = "LAW"

// line is formatted when it is printed alone.
type line struct {
	at                           time.Time
	what, process, method, where string
	detail                       string
	number, status               int
	err                          error
}

func newHistory() *History { return &History{began: time.Now()} }

func (h *History) add(l line) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.at = time.Now()
	if len(h.lines) < shown {
		h.lines = append(h.lines, l)
	} else {
		h.lines[h.number%shown] = l
	}
	h.number++
	switch {
	case l.what == "write":
		h.writes = append(h.writes, l)
	case l.what == lawLine && h.before == nil:
		h.before = h.last()
	}
}

// Note adds a line of a story, a fault or a law.
func (h *History) Note(what, format string, args ...any) {
	h.add(line{what: what, detail: fmt.Sprintf(format, args...)})
}

// answer adds a request with its answer. Of Leases only failures are added: processes read or renew them all the time.
func (h *History) answer(process string, r *http.Request, answer *http.Response, err error) {
	if err == nil && strings.Contains(r.URL.Path, "/leases/") {
		return
	}
	l := line{what: "answer", process: process, method: r.Method, where: r.URL.Host + r.URL.RequestURI(), err: err}
	if answer != nil {
		l.status = answer.StatusCode
	}
	h.add(l)
}

// wrote adds a write that was stored.
func (h *History) wrote(process string, r *http.Request, number int) {
	h.add(line{what: "write", process: process, method: r.Method, where: r.URL.Host + r.URL.Path, number: number,
		detail: r.URL.Query().Get("fieldManager")})
}

// events adds what a watch delivers.
func (h *History) events(process string, r *http.Request, raw []byte) {
	var kinds []string
	for event := range bytes.Lines(raw) {
		kind, _, _ := bytes.Cut(bytes.TrimPrefix(event, []byte(`{"type":"`)), []byte(`"`))
		kinds = append(kinds, string(kind))
	}
	h.add(line{what: "events", process: process, where: r.URL.Host + r.URL.Path, detail: strings.Join(kinds, " ")})
}

// String is all writes, and the lines that led to the first broken law, or the last.
func (h *History) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "all %d writes:\n", len(h.writes))
	for _, l := range h.writes {
		b.WriteString(l.format(h.began))
	}
	lines, what := h.before, "the lines before the first broken law"
	if lines == nil {
		lines, what = h.last(), "the last lines"
	}
	fmt.Fprintf(&b, "%s, of %d:\n", what, h.number)
	for _, l := range lines {
		b.WriteString(l.format(h.began))
	}
	return b.String()
}

// last are the last lines. The mutex is held.
func (h *History) last() (lines []line) {
	for n := max(0, h.number-min(shown, len(h.lines))); n < h.number; n++ {
		lines = append(lines, h.lines[n%shown])
	}
	return lines
}

func (l line) format(began time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%14s %-7s", l.at.Sub(began).Round(time.Microsecond), l.what)
	for _, part := range []string{l.process, l.method, l.where, l.detail} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	if l.number > 0 {
		fmt.Fprintf(&b, " (write %d)", l.number)
	}
	if l.status > 0 {
		fmt.Fprintf(&b, " %d", l.status)
	}
	if l.err != nil {
		fmt.Fprintf(&b, " error: %v", l.err)
	}
	return b.String() + "\n"
}
