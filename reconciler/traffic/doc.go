// SPDX-License-Identifier: Apache-2.0

// Package traffic gives Releases the share of traffic their TrafficTargets ask for. A Pod takes traffic while it
// carries the label `shipper-traffic-status: enabled`, which the one Service of the Application marked `shipper-lb:
// production` selects.
//
// How many Pods, and which, is judged by apis/rules/traffic over the weights of all TrafficTargets of the
// Application and the Pods of all its Releases in one cluster. Whether they take traffic is read from
// EndpointSlices. A Release that is no Pods, as its CapacityTarget says, has whatever traffic is asked for, and needs no
// Service. Pods, EndpointSlices, Services and TrafficTargets wake it; nothing is polled. Where another management
// cluster has the Application, nothing is written.
package traffic
