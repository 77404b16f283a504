// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
)

// TestInterruptible is about questions without an answer: Ctrl-C ends them.
func TestInterruptible(t *testing.T) {
	from, to := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	in := bufio.NewReader(Interruptible(ctx, from))
	go func() { _, _ = io.WriteString(to, "yes\n") }()
	if line, err := in.ReadString('\n'); line != "yes\n" || err != nil {
		t.Errorf("an answer is read as %q, %v", line, err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := in.ReadString('\n')
		read <- err
	}()
	interrupt()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
}

func TestInterruptibleTellsTheEnd(t *testing.T) {
	from, to := io.Pipe()
	go func() {
		_, _ = io.WriteString(to, "kind: Application")
		_ = to.Close()
	}()
	text, err := io.ReadAll(Interruptible(t.Context(), from))
	if string(text) != "kind: Application" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
