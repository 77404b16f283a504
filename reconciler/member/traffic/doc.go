// SPDX-License-Identifier: Apache-2.0

// Package traffic gives Releases the share of traffic their TrafficTargets ask for, by the Service of the Application marked
// `shipper-lb: production`. While several Releases weigh something, a Pod takes traffic while it carries the label
// `shipper-traffic-status: enabled`, which that Service selects. While exactly one does, the Service selects by
// `shipper-release`, and Pods need no label.
//
// How many Pods, and which, is judged by apis/rules/traffic over the weights of all TrafficTargets of the
// Application and the Pods of all its Releases in one cluster. Whether they take traffic is read from
// EndpointSlices. A Release that is no Pods, as its CapacityTarget says, has whatever traffic is asked for, and needs no
// Service. Pods, EndpointSlices, Services and TrafficTargets wake it; nothing is polled. Where another management
// cluster has the Application, nothing is written.
//
// # Several Services
//
// Where the objects of charts are named by Application, an Application has any number of production Services. Each is shifted by itself,
// by the rules above, over the Pods that are made for it: they have the label `backend.shipper.booking.com/SERVICE: "true"` from their
// Deployment's template. `serves.shipper.booking.com/SERVICE: "true"` lets a Pod into the traffic of one Service. By Release, such a
// Service selects both the Release and the Pods made for it. Pods that are made for no Service count for none, and an Application without
// a Service has whatever traffic is asked for. All Services move in the same pass, and a Pod is patched once for all of them. A target is
// ready when every Service is, and reports the worst one.
//
// A Release counts for the Services that some of its Pods are made for. A Service that the newest Release with traffic has no Pods for
// stays as it is: the Pods that serve go on until capacity removes them.
//
// The installation keeps ports of an incumbent on a Service (KeptPortsAnnotation). They go when no other Release has traffic or Pods.
//
// # How the Service is turned
//
// The selector is the only state. The writer of EndpointSlices reads Services and Pods by two watches: it
// may hear of a new selector before it hears of the labels, or of the Pods, that the selector is for, and would take everything
// out of the Service for a moment. What another watch says, as Shipper's own, proves nothing. So before the Service is turned to
// Pods that do not serve already, a second one is made that selects the same, without an address or clients
// (`<service>-shipper-proof`). When its EndpointSlices show just the Pods that are to serve, their writer knows them, and the
// Service is turned, as it was read only. Then the second one goes. The outcome is reported by one TrafficTarget of the Application.
//
//	the Service selects   weigh something                  what is done
//	by label              one                              when all its ready Pods serve, or no others do, or the shadow shows
//	                                                       them: the Service is turned to it
//	by release            that one                         nothing, whatever its Pods do
//	by release            another one                      a proof of its Pods; the Service is turned to it
//	by release            several, or that one no longer   labels as the weights want them; a proof; the Service is turned to labels
//	anything else                                          the same, as if it selected by release; installation leaves it to this
//	nothing: it is made                                    installation gives it the InitialSelector
//
// A Release without requested weights is left as it was found, and so is the Service where all are. So is a Release that has
// Pods and says nothing of the cluster: a backup did not have it, or it has the cluster by another name. One that is going weighs
// nothing, as soon as another does.
package traffic
