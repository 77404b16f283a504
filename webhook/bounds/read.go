// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// firstRead is the memory reserved before anything has arrived, whatever length is declared.
	firstRead = 16 << 10
	// namespaceWithin is the offset before which an API server writes the namespace of a review.
	namespaceWithin = 4 << 10
)

// refused is a request that is not a review.
type refused struct {
	code   int
	reason string
}

// Error is error.
func (r *refused) Error() string { return r.reason }

// read reads the whole body of a request, unless it is too long, takes too long, or ctx ends.
func (b *Bounds) read(ctx context.Context, w http.ResponseWriter, r *http.Request, review *review) ([]byte, error) {
	switch {
	case r.ContentLength < 0:
		return nil, &refused{http.StatusLengthRequired, "the length of the review is not declared"}
	case r.ContentLength > maxBody:
		return nil, &refused{http.StatusRequestEntityTooLarge, fmt.Sprintf("a review has %d bytes at most", maxBody)}
	}
	// Servers that cannot set a deadline, as in tests, need none.
	deadlines := http.NewResponseController(w)
	until := b.clock.Now().Add(min(arrival, timeoutFor(r)))
	_ = deadlines.SetReadDeadline(until)
	_ = deadlines.SetWriteDeadline(b.clock.Now().Add(timeoutFor(r) + defaultTimeout))
	stop := interrupting(ctx, deadlines)
	defer stop()
	size := int(r.ContentLength)
	body := make([]byte, 0, min(size, firstRead))
	for len(body) < size {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(size-len(body), len(body)))
		}
		n, err := r.Body.Read(body[len(body):min(cap(body), size)])
		body = body[:len(body)+n]
		b.inFlight.grow(review, n)
		switch {
		case errors.Is(context.Cause(ctx), errBusy):
			return nil, errBusy
		case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errLate
		case err != nil && len(body) < size:
			return nil, &refused{http.StatusBadRequest, fmt.Sprintf("reading the review: %v", err)}
		}
	}
	if stop() {
		_ = deadlines.SetReadDeadline(time.Time{})
	}
	return body, nil
}

// interrupting ends the reading when ctx is done, until stop is called; stop reports whether it did not. It waits for that,
// because setting a deadline after the handler has returned panics.
func interrupting(ctx context.Context, deadlines *http.ResponseController) (stop func() bool) {
	ended := make(chan struct{})
	unregister := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = deadlines.SetReadDeadline(time.Unix(1, 0))
	})
	return sync.OnceValue(func() bool {
		if unregister() {
			return true
		}
		<-ended
		return false
	})
}

// whole is the body of a request that was read.
func whole(body []byte) io.ReadCloser {
	if len(body) == 0 {
		return http.NoBody
	}
	return io.NopCloser(bytes.NewReader(body))
}

// namespaceOf is the namespace in a review; empty when there is none, or it cannot be parsed.
func namespaceOf(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body[:min(len(body), namespaceWithin)]))
	if !enter(d, "request") || !enter(d, "namespace") {
		return ""
	}
	namespace, _ := token(d).(string)
	return namespace
}

// enter reads the next object up to the value of a key.
func enter(d *json.Decoder, key string) bool {
	if token(d) != json.Delim('{') {
		return false
	}
	for {
		name, ok := token(d).(string)
		switch {
		case !ok:
			return false
		case name == key:
			return true
		case !skip(d):
			return false
		}
	}
}

// skip reads over the next value.
func skip(d *json.Decoder) bool {
	for depth := 0; ; {
		switch token(d) {
		case nil:
			return false
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// token is the next token; nil at the end, and for null, which an API server never writes before the namespace.
func token(d *json.Decoder) json.Token {
	t, err := d.Token()
	if err != nil {
		return nil
	}
	return t
}
