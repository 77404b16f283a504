// SPDX-License-Identifier: Apache-2.0

// Package apis is the room of words and pure judgement: the kinds users apply (shipper/v1alpha1) and the rules
// both the webhook and the reconciler judge by (rules/...).
//
// Nothing here has a client, a context, a clock or a logger. What needs one of those is not a word.
package apis
