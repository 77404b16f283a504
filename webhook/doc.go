// SPDX-License-Identifier: Apache-2.0

// Package webhook answers one question: may this be written? It is asked by the API server about every object of Shipper
// before it is stored, and answers from memory, on every replica the same, without side effects.
//
// What is judged, by kind and operation. Writes of status never come here; writes of metadata pass, but for what the last
// column names; a spec that does not change is not judged again.
//
//	kind                create                          update of spec                 delete                     metadata
//	Application         name, labels, template          the same                       no block in effect, unless override: well-formed, blocks exist,
//	                    no block in effect              no block in effect             the namespace is going     right "override"; control annotations:
//	                    (mutating) history limit, chart pinned, requester, override normalised                    restored, right "stamp"
//	Release             right "stamp"; stamp matches    environment immutable          no block in effect, unless the same, and the labels of the stamp
//	                    environment and owner           targetStep is a step           Application or namespace
//	                    no block in effect              no block in effect             is gone or going
//	InstallationTarget  reconciler only                 reconciler only                no block in effect, unless nothing
//	CapacityTarget      owner Release exists            no block in effect             Release or namespace
//	TrafficTarget       no block in effect                                             is gone or going
//	Cluster             URL, region, capabilities,      the same; warned of Releases   warned of Releases that    nothing
//	                    scheduler                       that stay                      run there
//	RolloutBlock        message; author (mutating:      the same                       allowed, recorded          nothing
//	                    stamped from the user)
//
// Whether a block is in effect is judged by the override annotation of the object itself; for a target, by that of its
// Release or of the newest Release of the same Application, whose rollout moves it.
//
// How requests are refused: 422 with one cause per field for what the user can mend in the object; 403 for RolloutBlocks and
// for missing rights; 503 with Retry-After when it cannot be judged now: caches not filled, a chart constraint whose
// repository is unknown and does not answer, an API server that cannot say what a user may do. If the webhook itself cannot
// be reached the API server refuses (failurePolicy: Fail), but for Shipper's own namespace, from which it is mended.
//
// Facts come from watches (package facts). A request waits for the network only when a chart's index is not in memory, when
// an override or a control annotation is added (a SubjectAccessReview, kept for seconds), and when an object is not known
// that may just have been created.
package webhook
