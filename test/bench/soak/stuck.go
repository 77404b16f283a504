// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// settling is how long after the last edit something may still be under way.
const settling = 5 * time.Minute

// stuck reports why an Application is not at rest; empty when it is: its newest Release is at the step that is wanted of it, or what
// it waits for is Pods whose image cannot be pulled, which it says.
func stuck(app *shipper.Application, rel *shipper.Release) string {
	switch {
	case app == nil || app.DeletionTimestamp != nil:
		return "there is no such Application"
	case app.Status.ObservedGeneration != app.Generation:
		return "the Application's last change has not been seen"
	case rel == nil || rel.DeletionTimestamp != nil:
		return "it has no Release"
	case !shipper.ConditionTrue(app.Status.Conditions, shipper.ApplicationReleaseSynced):
		return "its template is not its newest Release's environment: " + message(app.Status.Conditions, shipper.ApplicationReleaseSynced)
	case shipper.ConditionTrue(app.Status.Conditions, shipper.ApplicationBlocked):
		return "it is blocked: " + message(app.Status.Conditions, shipper.ApplicationBlocked)
	case rel.Status.ObservedGeneration != rel.Generation:
		return fmt.Sprintf("the last change of Release %s has not been seen", rel.Name)
	case !shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseScheduled):
		return fmt.Sprintf("Release %s is not scheduled: %s", rel.Name, message(rel.Status.Conditions, shipper.ReleaseScheduled))
	case rel.Status.AchievedStep != nil && rel.Status.AchievedStep.Step == rel.Spec.TargetStep &&
		shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseStrategyExecuted):
		return ""
	case tag(rel) == broken:
		return waiting(rel)
	}
	return fmt.Sprintf("Release %s is not at step %d: %s", rel.Name, rel.Spec.TargetStep,
		message(rel.Status.Conditions, shipper.ReleaseStrategyExecuted))
}

// waiting is empty when a Release says that it waits for Pods, and for which.
func waiting(rel *shipper.Release) string {
	if rel.Status.Strategy != nil {
		for _, c := range rel.Status.Strategy.Conditions {
			if c.Type == shipper.StrategyContenderAchievedCapacity && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "ImagePull") {
				return ""
			}
		}
	}
	return fmt.Sprintf("Release %s does not say that its image cannot be pulled", rel.Name)
}

func message(of []shipper.Condition, conditionType string) string {
	c := shipper.FindCondition(of, conditionType)
	if c == nil {
		return "it does not say why"
	}
	return strings.TrimSpace(c.Reason + " " + c.Message)
}

// tag is that of a Release's image.
func tag(rel *shipper.Release) string {
	if rel.Spec.Environment.Values == nil {
		return ""
	}
	image, _ := (*rel.Spec.Environment.Values)["image"].(map[string]any) // absent: the chart's
	tag, _ := image["tag"].(string)
	return tag
}

// leftovers is an error for what there is in application clusters that should not be: Deployments of Releases that are gone, and
// other numbers of Pods than are wanted of a Release that serves alone.
func (s *soak) leftovers(ctx context.Context) error {
	var releases shipper.ReleaseList
	if err := s.world.Management.List(ctx, &releases); err != nil {
		return fmt.Errorf("listing Releases: %w", err)
	}
	known := map[client.ObjectKey]bool{}
	for i := range releases.Items {
		known[client.ObjectKeyFromObject(&releases.Items[i])] = true
	}
	var errs []error
	for n, cluster := range s.world.Clusters {
		name := s.world.Fleet.Applications[n].Name
		deployments, err := cluster.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: shipper.AppLabel})
		if err != nil {
			return fmt.Errorf("listing what %s has: %w", name, err)
		}
		for _, d := range deployments.Items {
			if !known[client.ObjectKey{Namespace: d.Namespace, Name: d.Labels[shipper.ReleaseLabel]}] {
				errs = append(errs, fmt.Errorf("%s has Deployment %s/%s of a Release that is gone", name, d.Namespace, d.Name))
			}
		}
		pods, err := cluster.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: shipper.AppLabel})
		if err != nil {
			return fmt.Errorf("listing what %s has: %w", name, err)
		}
		errs = append(errs, s.wrongPods(name, byNamespace(pods.Items))...)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d things in application clusters are not as they should be:\n%w", len(errs), errors.Join(errs[:min(len(errs), 10)]...))
}

// wrongPods compares the Pods of Releases that are at their last step with what was asked for.
func (s *soak) wrongPods(cluster string, pods map[string][]corev1.Pod) []error {
	var errs []error
	for _, key := range s.keys {
		rel := s.sight.Newest(key)
		if rel == nil || rel.Spec.TargetStep != last || tag(rel) == broken {
			continue
		}
		want := replicas(rel)
		if got := ready(pods[key.Namespace], rel.Name); got != want || len(pods[key.Namespace]) != want {
			errs = append(errs, fmt.Errorf("%s has %d Pods in %s, and %d that are ready of Release %s, which should have all of %d",
				cluster, len(pods[key.Namespace]), key.Namespace, got, rel.Name, want))
		}
	}
	return errs
}

// replicas is how many Pods a Release has in each cluster when it is full on.
func replicas(rel *shipper.Release) int {
	switch n := (*rel.Spec.Environment.Values)["replicaCount"].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 1 // the chart's
}

// ready is how many Pods of a Release are ready.
func ready(pods []corev1.Pod, release string) int {
	n := 0
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Labels[shipper.ReleaseLabel] == release {
				n++
			}
		}
	}
	return n
}

func byNamespace(pods []corev1.Pod) map[string][]corev1.Pod {
	out := map[string][]corev1.Pod{}
	for _, pod := range pods {
		out[pod.Namespace] = append(out[pod.Namespace], pod)
	}
	return out
}
