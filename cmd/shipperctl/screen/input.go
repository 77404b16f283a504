// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"context"
	"io"
)

// Interruptible reads what somebody types until the context ends, even while nothing is typed.
func Interruptible(ctx context.Context, in io.Reader) io.Reader {
	return &input{ctx: ctx, in: in}
}

// input is read by one goroutine at a time.
type input struct {
	ctx context.Context
	in  io.Reader
}

// Read reads into memory of its own: what comes after the context has ended is nobody's.
func (i *input) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	type chunk struct {
		text []byte
		err  error
	}
	came := make(chan chunk, 1)
	size := len(p)
	go func() {
		text := make([]byte, size)
		n, err := i.in.Read(text)
		came <- chunk{text[:n], err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case c := <-came:
		return copy(p, c.text), c.err
	}
}
