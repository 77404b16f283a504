// SPDX-License-Identifier: Apache-2.0

// Package screen lays text out for terminals.
package screen

import (
	"context"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Of reports whether out is a terminal, and its width; 0 if it is none.
func Of(out io.Writer) (width int, is bool) {
	o, ok := out.(Output)
	if !ok || !term.IsTerminal(int(o.file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(o.file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// Draws reports whether out is a terminal with a cursor that can be moved.
func Draws(out io.Writer) bool {
	_, is := Of(out)
	return is && os.Getenv("TERM") != "dumb"
}

// Wrap breaks text between words into lines of some columns; 0 or less are unbounded. A longer word has a line of its own.
func Wrap(text string, columns int) []string {
	if columns <= 0 {
		return []string{text}
	}
	var out []string
	current := ""
	for _, word := range strings.Fields(text) {
		if current != "" && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > columns {
			out = append(out, current)
			current = ""
		}
		current = strings.TrimSpace(current + " " + word)
	}
	return append(out, current)
}

// Hang writes text behind a mark, in lines of a width that begin below one another.
func Hang(mark, text string, width int) string {
	var out strings.Builder
	indent := utf8.RuneCountInString(mark)
	if width > 0 {
		width = max(width-indent, 20)
	}
	for _, part := range Wrap(text, width) {
		out.WriteString(strings.TrimRight(mark+part, " ") + "\n")
		mark = strings.Repeat(" ", indent)
	}
	return out.String()
}

// Shorten cuts text to some columns; 0 or less are unbounded.
func Shorten(text string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// Interruptible reads input until the context ends, even while none arrives.
func Interruptible(ctx context.Context, in io.Reader) io.Reader {
	return &input{ctx: ctx, in: in}
}

// input is read by one goroutine at a time.
type input struct {
	ctx context.Context
	in  io.Reader
}

// Read reads into memory of its own: input that comes after the context has ended is dropped.
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
