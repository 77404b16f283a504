// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// readyPods counts the Pods of a release that are ready and stay, per cluster: "eu-west-1: 3, us-east-1: 3".
func (s *fixture) readyPods(release string) func(context.Context) (string, error) {
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{shipper.ReleaseLabel: release}); err != nil {
			return "", err
		}
		ready := 0
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp == nil && fleet.PodReady(&pods.Items[i]) {
				ready++
			}
		}
		return fmt.Sprint(ready), nil
	})
}

// endpoints counts the ready endpoints of the service by release, per cluster, from its EndpointSlices.
func (s *fixture) endpoints(releases ...string) func(context.Context) (string, error) {
	return s.endpointsOf(service, releases...)
}

// endpointsOf is endpoints for another service.
func (s *fixture) endpointsOf(service string, releases ...string) func(context.Context) (string, error) {
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		counts := make(map[string]int, len(releases))
		slicesOfService := &discoveryv1.EndpointSliceList{}
		if err := c.List(ctx, slicesOfService, client.InNamespace(namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
			return "", err
		}
		for _, slice := range slicesOfService.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.TargetRef == nil || endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready {
					continue
				}
				pod := &corev1.Pod{}
				if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: endpoint.TargetRef.Name}, pod); err != nil {
					return "", err
				}
				counts[pod.Labels[shipper.ReleaseLabel]]++
			}
		}
		numbers := make([]string, 0, len(releases))
		for _, release := range releases {
			numbers = append(numbers, fmt.Sprint(counts[release]))
			delete(counts, release)
		}
		if len(counts) > 0 {
			return "", fmt.Errorf("endpoints of other releases: %v", counts)
		}
		return strings.Join(numbers, "+"), nil
	})
}

// leftovers lists what is left of a release in each cluster: kinds an installation and Kubernetes make for it.
func (s *fixture) leftovers(release string) func(context.Context) (string, error) {
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	}
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		var left []string
		for _, kind := range kinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{shipper.ReleaseLabel: release}); err != nil {
				return "", err
			}
			for _, object := range list.Items {
				left = append(left, kind.Kind+"/"+object.Name)
			}
		}
		if len(left) == 0 {
			return "nothing", nil
		}
		return strings.Join(left, " "), nil
	})
}

// perCluster looks into every application cluster and joins what is seen, each after its cluster's name.
func (s *fixture) perCluster(look func(context.Context, client.Client) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var seen []string
		for _, a := range s.applications {
			one, err := look(ctx, a.client)
			if err != nil {
				return "", fmt.Errorf("looking into %s: %w", a.name, err)
			}
			seen = append(seen, a.name+": "+one)
		}
		return strings.Join(seen, ", "), nil
	}
}

// each is what perCluster shows when every cluster shows the same.
func (s *fixture) each(value string) string {
	var all []string
	for _, a := range s.applications {
		all = append(all, a.name+": "+value)
	}
	return strings.Join(all, ", ")
}

// achieved is the step a release has achieved and the one whose command it waits for.
func (s *fixture) achieved(release string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		rel := &shipper.Release{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, rel); err != nil {
			return "", err
		}
		step := "none"
		if rel.Status.AchievedStep != nil {
			step = rel.Status.AchievedStep.Name
		}
		switch {
		case rel.Status.Strategy == nil:
			return step, nil
		case rel.Status.Strategy.State.WaitingForCommand == shipper.StrategyStateTrue:
			return step + ", waiting for command", nil
		case shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete):
			return step + ", complete", nil
		}
		return step, nil
	}
}

// condition is the status and message of a condition of the Application or a Release.
func (s *fixture) condition(object client.Object, name, conditionType string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return "", err
		}
		var conditions []shipper.Condition
		switch o := object.(type) {
		case *shipper.Application:
			conditions = o.Status.Conditions
		case *shipper.Release:
			conditions = o.Status.Conditions
		}
		c := shipper.FindCondition(conditions, conditionType)
		if c == nil {
			return "absent", nil
		}
		return strings.TrimSpace(string(c.Status) + " " + c.Message), nil
	}
}

// history names an Application's releases, oldest first.
func (s *fixture) history(ctx context.Context, name string) ([]string, error) {
	app := &shipper.Application{}
	if err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, app); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return app.Status.History, nil
}

// secret is the content of a Secret's key, per cluster.
func (s *fixture) secret(name, key string) func(context.Context) (string, error) {
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		return string(secret.Data[key]), err
	})
}

// partition is that of a StatefulSet, per cluster.
func (s *fixture) partition(name string) func(context.Context) (string, error) {
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		set := &appsv1.StatefulSet{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, set)
		if rolling := set.Spec.UpdateStrategy.RollingUpdate; err == nil && rolling != nil && rolling.Partition != nil {
			return fmt.Sprint(*rolling.Partition), nil
		}
		return "none", err
	})
}

// tried is the annotation by which the demonstration tells the Pods of two Releases apart.
const tried = "example.com/try"

// tries counts the ready Pods with that annotation whose names begin with a prefix, by the annotation, per cluster: "2 of one, 1 of two".
func (s *fixture) tries(prefix string) func(context.Context) (string, error) {
	return s.perCluster(func(ctx context.Context, c client.Client) (string, error) {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		counts := map[string]int{}
		for i := range pods.Items {
			pod := &pods.Items[i]
			try := pod.Annotations[tried]
			if try != "" && strings.HasPrefix(pod.Name, prefix) && pod.DeletionTimestamp == nil && fleet.PodReady(pod) {
				counts[try]++
			}
		}
		var out []string
		for _, try := range slices.Sorted(maps.Keys(counts)) {
			out = append(out, fmt.Sprintf("%d of %s", counts[try], try))
		}
		return strings.Join(out, ", "), nil
	})
}
