// SPDX-License-Identifier: Apache-2.0

// Package capacity gives Releases the number of Pods their CapacityTargets ask for: ceil(totalReplicaCount ×
// percent / 100) in each cluster. It writes spec.replicas of the Release's one Deployment, and reports how far its
// Pods are. Where objects are named by Application, a Release has any number of Deployments: each gets its percentage of its own number.
// Workloads that exist once for all Releases are changed by package inplace, and count here.
//
// A cluster is ready when the Deployment's own controller has caught up and exactly as many Pods as asked for are
// available. Where all of the Release is no Pods it needs no Deployment: its chart may render to nothing. Deployments and Pods
// wake it; nothing is polled. Where another management cluster has the Application, nothing is written.
package capacity
