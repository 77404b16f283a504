// SPDX-License-Identifier: Apache-2.0

// Package recorder tells events: few at a time, and within bounds, so that statuses never wait for them.
//
// client-go's recorder for events.k8s.io/v1 begins a goroutine and a request for each event at once, thousands of them when
// something concerns everybody, and keeps each for up to twelve minutes. Its older recorder tells one at a time, in core/v1, and
// drops what its queue has no room for, uncounted and whatever it is. Neither can be told otherwise. What is here is what is left
// without them: a queue with bounds, and a list of what was told lately.
package recorder
