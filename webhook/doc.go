// SPDX-License-Identifier: Apache-2.0

// Package webhook answers one question: may this be written? It is asked by the API server about every object of
// Shipper before it is stored, and answers from memory, on every replica the same, without side effects.
//
// What is judged, by kind and operation. Writes of status never come here; writes of metadata pass, but for what stands
// under meta; a spec that does not change is not judged again.
//
//	kind                what is judged
//	Application         create: name, labels, template; no block in effect
//	                    spec:   the same
//	                    delete: no block in effect, or the namespace is going
//	                    meta:   override well-formed, its blocks exist, the user may override; control annotations are
//	                            restored, and changed only by who may stamp
//	                    completed: history limit, chart pinned, requester, override normalised
//	Release             create: the user may stamp; stamp, environment and owner match; no block in effect
//	                    spec:   environment immutable; targetStep is a step; no block in effect
//	                    delete: no block in effect, or the Application or the namespace is gone or going
//	                    meta:   as for Applications, labels of the stamp and the reference to the Application too
//	InstallationTarget  create: the reconciler, or the user may stamp; its Release exists and owns it; no block in effect
//	CapacityTarget      spec:   the reconciler only; no block in effect
//	TrafficTarget       delete: no block in effect, or the Release or the namespace is gone or going
//	                    meta:   the reference to the Release stays, until the Release is gone or going;
//	                            so are labels and annotations of Shipper's, and whoever's who may stamp
//	Cluster             create: URL, region, capabilities, scheduler
//	                    spec:   the same; warned of Releases that stay
//	                    delete: warned of Releases that run there
//	Namespace           delete: every Application in it may be deleted, or nothing can be judged; warned of its RolloutBlocks
//	RolloutBlock        create: message and author; completed: author
//	                    spec:   the same
//	                    delete: allowed, audited
//
// Whether a block is in effect is judged by the override annotation of the object itself; for a target, by that of its
// Release or of the newest Release of the same Application, whose rollout moves it.
//
// How requests are refused: 422 with one cause per field for what the user can mend in the object; 403 for
// RolloutBlocks and for missing rights; 503 when it cannot be judged now: caches not filled, an API server that is lost or
// cannot say what a user may do, all with Retry-After; a chart constraint whose repository is unknown and does not answer. If the
// webhook itself cannot be reached the API server refuses (failurePolicy: Fail), but for Shipper's own namespace, from
// which it is mended.
//
// A review may be forged by whoever reaches the port: its user is what it claims. So nothing is written or recorded for one,
// reviews of Shipper's own namespace are refused, and what one has read or fetched depends on Secrets and on Releases that
// there are, never on a user's name (docs/security.md).
//
// Facts come from watches (package facts). A request waits for the network only when a chart's index is not in memory,
// when an override or a control annotation is added (a SubjectAccessReview, kept for seconds), when an object is
// not known that may just have been created, and for the RolloutBlocks while their watch is down.
package webhook
