// SPDX-License-Identifier: Apache-2.0

// Package lots decides what becomes of each object that a chart rendered under the name of its Application: it exists once per Release, or
// all Releases share it, or it is changed in place.
//
//   - Side by side: Deployments that can run twice, Jobs that are no hooks, and what scales those Deployments. They get the Release's
//     suffix. So do copies of the ConfigMaps and Secrets that Pods use, so that a rollback brings the configuration back.
//   - In place: StatefulSets, DaemonSets, and Deployments that would conflict with themselves. They keep their names. Their Pods use copies
//     as well, those of an earlier Release as long as their content is the same.
//   - Shared: all other objects, under the names that the chart gave.
//
// References to what was renamed are rewritten in the fields that kustomize knows as references, never by text. Of is pure: it reads no
// cluster. Package render adds Shipper's labels to what it returns.
package lots
