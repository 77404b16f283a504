// SPDX-License-Identifier: Apache-2.0

// Package restore loses a management cluster, the recent past of it and of an application cluster, and credentials. Another
// management cluster gets Applications and Releases again, under new UIDs, with and without status; guards check every event
// of the application clusters: what serves goes on serving, and no Deployment, Service or Pod is deleted. One test restores
// with shipperctl.
package restore
