// SPDX-License-Identifier: Apache-2.0

// Package webhook validates and completes the objects of Shipper at admission. It answers from caches, without side effects,
// and the same on every replica.
//
// The rules, by kind and operation. Writes of status never come here; writes of metadata pass, except for the rules
// under meta; an unchanged spec is not validated again.
//
//	kind                rules
//	Application         create: name, labels, template; no block in effect
//	                    spec:   the same
//	                    delete: no block in effect, or the namespace is being deleted
//	                    meta:   override well-formed, its blocks exist, the user may override; control annotations are
//	                            restored, and only users who may stamp change them
//	                    completed: history limit, chart pinned, requester, override normalised
//	Release             create: the user may stamp; stamp, environment and owner match; no block in effect
//	                    spec:   environment immutable; targetStep is a step; no block in effect
//	                    delete: no block in effect, or the Application or the namespace is gone or going
//	                    meta:   as for Applications, labels of the stamp and the reference to the Application too
//	InstallationTarget  create: the reconciler, or the user may stamp; its Release exists and owns it; no block in effect
//	CapacityTarget      spec:   the reconciler only; no block in effect
//	TrafficTarget       delete: no block in effect, or the Release or the namespace is gone or going
//	                    meta:   the reference to the Release stays, until the Release is gone or going;
//	                            only users who may stamp change Shipper's labels and annotations
//	Cluster             create: URL, region, capabilities, scheduler
//	                    spec:   the same; warned of Releases that stay
//	                    delete: warned of Releases that run there
//	Namespace           delete: every Application in it may be deleted, or nothing can be judged; warned of its RolloutBlocks
//	RolloutBlock        create: message and author; completed: author
//	                    spec:   the same
//	                    delete: allowed, audited
//	Notification        create: the user may get the Secret that it names; selector; body compiles
//	                    spec:   the same, the Secret when it changes
//
// Whether a block is in effect is judged by the override annotation of the object itself; for a target, by that of its
// Release or of the newest Release of the same Application, whose rollout moves it.
//
// How requests are refused: 422 with one cause per field for errors in the object; 403 for RolloutBlocks and for missing
// rights; 503 when the request cannot be judged now. With Retry-After: caches not filled, an API server that is lost or cannot
// answer a SubjectAccessReview. Without: a chart constraint whose repository is unknown and does not answer. If the webhook cannot
// be reached, the API server refuses (failurePolicy: Fail), except in Shipper's own namespace, so that it can be repaired there.
//
// Any client that reaches the port can forge a review and its user. So a review makes the webhook write or record nothing,
// reviews of Shipper's own namespace are refused, and what a review makes the webhook read or fetch depends on existing Secrets
// and Releases, never on a user's name (docs/security.md).
//
// Objects come from watches (package state). A request waits for the network only when a chart's index is not in memory,
// when an override or protected metadata is added (a SubjectAccessReview, cached for seconds), when an object is not in the
// cache and may just have been created, and for the RolloutBlocks while their watch is down.
package webhook
