// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Control sequences of terminals.
const (
	enter = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	leave = "\x1b[?25h\x1b[?1049l" // the screen as it was
	home  = "\x1b[H"
	clear = "\x1b[K"  // to the end of the line
	rest  = "\x1b[0J" // to the end of the screen
)

// Canvas is a terminal's alternate screen; closing it restores the first. It is safe for concurrent use.
type Canvas struct {
	out io.Writer // without Output's replacing: what draws are control sequences

	mu     sync.Mutex
	opened bool
	last   string
}

// Open begins to draw on the terminal that out is. Nothing is written before the first view.
func Open(out io.Writer) *Canvas {
	if o, ok := out.(Output); ok {
		return &Canvas{out: o.file}
	}
	return &Canvas{out: out}
}

// Draw draws a view, unless it is the same as the last. Lines below the window are left out, with a note.
func (c *Canvas) Draw(text string) error {
	height := 24
	if file, ok := c.out.(*os.File); ok {
		if _, h, err := term.GetSize(int(file.Fd())); err == nil && h > 0 {
			height = h
		}
	}
	frame := fit(Printable(text), height)
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame == c.last {
		return nil
	}
	c.last = frame
	if !c.opened {
		frame, c.opened = enter+frame, true
	}
	if _, err := io.WriteString(c.out, frame); err != nil {
		return fmt.Errorf("drawing: %w", err)
	}
	return nil
}

// fit cuts a text to the height of a terminal: writing below the last line would scroll.
func fit(text string, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > height {
		hidden := len(lines) - height + 1
		lines = append(lines[:height-1:height-1], fmt.Sprintf("… %d lines more: the window is too low for them", hidden))
	}
	return home + strings.Join(lines, clear+"\r\n") + clear + rest
}

// Close gives the screen back.
func (c *Canvas) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened {
		_, _ = io.WriteString(c.out, leave) // the terminal is gone if this fails
	}
}
