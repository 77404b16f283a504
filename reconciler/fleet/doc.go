// SPDX-License-Identifier: Apache-2.0

// Package fleet holds the connections to application clusters: one per Cluster object, made in the background,
// watched by a heartbeat, closed when the Cluster or its credentials go.
//
// # Life of a connection
//
//	Set ──► connecting ──► ready ──► (heartbeat fails twice, or credentials are refused) ──► failed
//	             ▲                                                                             │
//	             └───────────── after a back-off of 1 s to 5 s, jittered ──────────────────────┘
//
// Connecting asks for the version and the APIs the cluster serves, checks that the account may list what has to be
// watched, and fills the caches. Only then Get returns the Member. Every 10 s a Lease is read, with 3 s to answer: any
// HTTP answer but 401 and 5xx means that the cluster lives. When the heartbeat fails, a second one follows at once, so
// that a dead cluster is named within 16 s, also when it dies while its caches fill; then whatever comes for them is as good
// as an answer, so that a large cluster may take its time. A request that has waited 2 s for its answer counts as the first of the
// two: a cluster that hangs during a request is reported within some 5 s. So does a watch that cannot be begun
// again: an API server that is away for a moment may come back with an older etcd. Every request ends when its cluster
// is lost, and after 12 s without an answer when it lives, so that no cluster holds up the work in others. The caches
// of a lost cluster are thrown away: nothing is ever decided on what it said before it died. Credentials that change,
// or a Cluster that goes, end the connection at once; but another token of the same account is used from the next request on, and
// caches and watches stay.
//
// Every change of a connection's state calls the handlers of WatchMembers; every event of a cluster's objects calls those of Watch or
// WatchInstalled, also for clusters that connect later. Handlers must not block.
//
// Kinds that have a status are watched whole, and nothing is kept of an object but its metadata and how it is; of those that
// have none, Secrets among them, metadata alone is watched. In the place of managedFields is a value that differs when a user has
// edited the object.
//
// # What a cluster says of itself
//
// A connection that stands watches all Nodes, and the ConfigMaps in shipper-system with the label shipper.booking.com/properties=true,
// with informers of their own: the selector of the caches is shipper-app. Of a Node its capacity and allocatable stay, so that a
// heartbeat of its kubelet changes nothing. Properties has the sums, and PropertyChanges reports changes, at most one in 10 s for a
// cluster. An account that lacks the right is named by Properties.Missing; the connection is Ready without it.
//
// # How much at a time
//
// Requests to one cluster, of all reconcilers together, are bounded.
//
// # Who works there
//
// Get returns no Member before Identify has said which management cluster this is, and the Member says it for the time of one
// pass. A reconciler calls Member.Claimed before it writes in a cluster: an Application that another management cluster has there
// is not touched. ClaimChanged reports whether an event changes that.
//
// # What the account needs in an application cluster
//
//	coordination.k8s.io  leases                     get                             the heartbeat
//	""                   serviceaccounts/token      create                          of its own account, to renew its token
//	""                   namespaces                 get list watch                  to see that a missing one appears
//	""                   nodes                      get list watch                  the figures that placements compare
//	""                   pods                       get list watch patch            the traffic label
//	""                   services                   get list watch create patch delete
//	""                   configmaps                 get list watch create patch delete   the anchors
//	""                   configmaps/finalizers      update                          anchors outlive what they own
//	apps                 deployments                get list watch create patch delete
//	apps                 statefulsets, daemonsets   get list watch create patch delete
//	""                   pods/eviction              create                          back half way in a StatefulSet
//	apps                 replicasets                get list watch                  for people who debug
//	discovery.k8s.io     endpointslices             get list watch                  who takes traffic
//
// and get, list, watch, create, patch and delete on every other kind that charts contain: serviceaccounts, secrets,
// persistentvolumeclaims, jobs, cronjobs, ingresses, networkpolicies,
// horizontalpodautoscalers, poddisruptionbudgets, roles and rolebindings are the usual ones. Roles and rolebindings
// of charts also need the rights they grant, or the verbs escalate and bind. /api, /apis and /version are open to
// every account by default. A kind that may not be listed and watched is read one by one and is not brought back
// when it is deleted.
package fleet
