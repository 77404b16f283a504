// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Credentials are what is known of the end of a cluster's credentials.
type Credentials struct {
	// NotAfter is their end, in seconds since 1970. Zero: they do not end, or it is not known when.
	NotAfter int64
	// Reason and Message say why they will soon fail; empty while they are good.
	Reason, Message string
}

// SetCredentials records when a cluster's credentials end. Warnings makes a request when reason or message
// change, not when only the end moves.
func (f *Fleet) SetCredentials(name string, c Credentials) {
	f.mu.Lock()
	was := f.credentials[name]
	f.credentials[name] = c
	if c == (Credentials{}) {
		delete(f.credentials, name)
	}
	warned := slices.Clone(f.warned)
	f.mu.Unlock()
	if was.Reason == c.Reason && was.Message == c.Message && (was.NotAfter == 0) == (c.NotAfter == 0) {
		return
	}
	for _, handle := range warned {
		handle(name)
	}
}

// Warnings is a source of requests for clusters whose credentials have another reason or message, named as the Clusters are.
func (f *Fleet) Warnings() source.Source {
	return named(func(handle func(cluster string)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.warned = append(f.warned, handle)
	})
}
