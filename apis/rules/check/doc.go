// SPDX-License-Identifier: Apache-2.0

// Package check decides about the checks of steps: which arguments they have, when they are measured, and what measurements mean. It makes
// none itself, and decides by what was measured and the time alone.
//
// A measurement gives a result if it passes or fails. A check has passed when it has as many results as it needs, at least one of them
// good, and no more bad ones than failureLimit. It has failed with one more than that. It is undecided with more measurements without a
// verdict than inconclusiveLimit, or with more errors one after another than consecutiveErrorLimit: an unknown value is neither success nor
// failure.
package check
