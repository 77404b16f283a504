// SPDX-License-Identifier: Apache-2.0

// Package render opens the archive of a chart, runs its templates for one release in one cluster, and returns the objects to
// install, or the rule of Shipper that the chart breaks.
//
// Open bounds what an archive unpacks to. Chart.Render runs the templates in package engine, within bounds of time and size; a
// Cache bounds concurrent renderings per namespace, and keeps their results. Manifest.Prepare adds Shipper's labels to the objects,
// and Manifest.Hooks to the hooks.
package render
