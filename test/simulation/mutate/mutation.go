// SPDX-License-Identifier: Apache-2.0

// Command mutate breaks the product, one line at a time, and runs stories of test/simulation until a law is broken. A mutation that
// survives shows that a law or a story is too weak. The source is not changed: the compiler reads the mutated file in place of it
// (-overlay).
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutation is one realistic mistake.
type mutation struct {
	// name says what is wrong, in a sentence.
	name string
	// file of the product, from the root of the module, old what stands there exactly once, and new what replaces it.
	file, old, new string
	// hunt is what HUNT of TestHunt lists: story/disturbance, separated by commas.
	hunt string
	// law is that which is expected to be broken.
	law int
}

// source is the mutated file.
func (m mutation) source(root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(raw), m.old); n != 1 {
		return "", fmt.Errorf("%s: this is there %d times, not once: %s", m.file, n, m.old)
	}
	return strings.Replace(string(raw), m.old, m.new, 1), nil
}
