// SPDX-License-Identifier: Apache-2.0

// Package restore proves that a management cluster may be lost, and the recent past of an application cluster. The
// Applications and Releases of the former are created again in another management cluster, under new UIDs and without their
// targets, with status or without; meanwhile a guard judges every event of the application clusters: what serves goes on
// serving, and no Deployment, Service or Pod is deleted.
package restore
