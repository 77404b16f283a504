// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// between is how long nothing is said of work that goes on.
const between = 3 * time.Second

// Progress says from time to time how far long work has come; of short work it says nothing. They are plain lines, to be read in
// a log, too.
type Progress struct {
	out   io.Writer
	clock clock.PassiveClock
	said  time.Time
}

// NewProgress returns one for work that begins now.
func NewProgress(out io.Writer, c clock.PassiveClock) *Progress {
	return &Progress{out: out, clock: c, said: c.Now()}
}

// Printf reports how far it is, unless something was said a moment ago.
func (p *Progress) Printf(format string, args ...any) {
	if now := p.clock.Now(); now.Sub(p.said) >= between {
		p.said = now
		fmt.Fprintf(p.out, format+"\n", args...)
	}
}
