// SPDX-License-Identifier: Apache-2.0

// Package recorder writes events of events.k8s.io/v1, one request at a time and from a bounded queue, so that a status never waits for an
// event.
//
// client-go's broadcaster for this API starts a goroutine with its own retries for each event: thousands when one thing concerns
// every Application, each kept for up to twelve minutes, and it counts nothing that it drops.
package recorder
