// SPDX-License-Identifier: Apache-2.0

// Package recorder bounds the requests of client-go's recorder of events.k8s.io/v1, which starts a goroutine and a request for each event
// at once: when one thing concerns every Application, statuses would wait for thousands of them.
//
// What client-go does stays as it is: a repetition, an event of the same type, reason and action about the same version of an object, is
// counted on the first, and the count is written at the second, every 30 minutes, and 6 minutes after the last; an event without an answer
// is sent 12 times, 10 seconds apart; one that the API server refuses is dropped.
package recorder
