// SPDX-License-Identifier: Apache-2.0

// Package capacity gives Releases the number of Pods their CapacityTargets ask for: ceil(totalReplicaCount ×
// percent / 100) in each cluster. It writes spec.replicas of the Release's Deployments (one by Release, any number by Application, each its
// percentage of its own number), and reports how far their Pods are, the worst first. Workloads that exist once for all Releases are
// changed by package inplace, and count here.
//
// A cluster is ready when the Deployment's own controller has caught up and exactly as many Pods as asked for are
// available. Where all of the Release is no Pods it needs no Deployment: its chart may render to nothing. Deployments and Pods
// wake it; nothing is polled. Where another management cluster has the Application, nothing is written.
package capacity
