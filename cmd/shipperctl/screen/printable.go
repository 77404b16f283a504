// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"os"
	"strings"
	"unicode"
)

// Printable replaces each character of a text that does not print by a blank, other than the ends of lines and tabs. Texts of users
// could otherwise move the cursor, colour what follows, or change the direction of writing.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// Output writes to a file, to a terminal only what prints: files and other programs get what there is.
type Output struct{ file *os.File }

// Onto returns an Output for a file.
func Onto(file *os.File) Output { return Output{file} }

// Write reports the length of p, whatever of it is replaced.
func (o Output) Write(p []byte) (int, error) {
	raw := p
	if _, is := Of(o); is {
		raw = []byte(Printable(string(p)))
	}
	if _, err := o.file.Write(raw); err != nil {
		return 0, fmt.Errorf("writing: %w", err)
	}
	return len(p), nil
}
