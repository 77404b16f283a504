// SPDX-License-Identifier: Apache-2.0

// Package restore proves that a management cluster may be lost, the recent past of an application cluster, and the
// credentials for one. Of the management cluster, Applications and Releases are created again in another
// one, under new UIDs and without their targets, with status or without; meanwhile a guard judges every event of the
// application clusters: what serves goes on serving, and no Deployment, Service or Pod is deleted. In the end one is lost with
// its etcd and restored by `shipperctl backup restore`, targets and status included.
package restore
