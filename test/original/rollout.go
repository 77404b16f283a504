// SPDX-License-Identifier: Apache-2.0

package original

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// Total is how many Pods each rollout has in each cluster when all is done.
const Total = 4

// Rollout is a rollout of the chart test-nginx from 0.0.1 to 0.0.2, whose contender is to be at step 1 of {staging, 50/50, full
// on}, or is on its way there.
type Rollout struct {
	// Namespace, which is made in all clusters, and App are whose it is.
	Namespace, App string
	// Stuck has the contender at step 0, asked for step 1, with an image that cannot be pulled.
	Stuck bool
	// Charts is the URL of the repository.
	Charts string
	// Regions of the application clusters.
	Regions []string
}

// side is one Release of a rollout, in words for the files.
type side struct {
	Rollout

	Name, Hash, Environment, Version, Values, Tag, PodVersion string
	Generation, TargetStep                                    int
	Achieved                                                  string // the step's name; empty when it is not
	Complete                                                  bool
	Percent, Weight, Replicas, Enabled                        int
	Total                                                     int
	Clusters                                                  []string
	StrategyConditions                                        []string
	OwnerUID, AnchorUID, OtherAnchorUID                       types.UID
	OtherAnchor                                               string
}

// ClusterList is the annotation's value.
func (s side) ClusterList() string { return strings.Join(s.Clusters, ",") }

// Leave leaves the rollout in the clusters, names its Releases, and returns when it is at rest: Pods run, those that have traffic
// are ready endpoints.
func (r Rollout) Leave(ctx context.Context, management *fleet.Cluster, applications []*fleet.Cluster) (
	incumbent, contender string, err error,
) {
	was, is, err := r.sides(applications)
	if err != nil {
		return "", "", err
	}
	for _, c := range append([]*fleet.Cluster{management}, applications...) {
		admin, err := c.Client(nil)
		if err != nil {
			return "", "", err
		}
		ns := &corev1.Namespace{}
		ns.Name = r.Namespace
		if err := admin.Create(ctx, ns); err != nil {
			return "", "", fmt.Errorf("creating a namespace in %s: %w", c.Name, err)
		}
	}
	app, err := created(ctx, management, "application.yaml", map[string]any{
		"Namespace": r.Namespace, "App": r.App, "Incumbent": was, "Contender": is,
	})
	if err != nil {
		return "", "", err
	}
	var targets [2]types.UID
	for i, s := range []side{was, is} {
		s.OwnerUID = app[0].GetUID()
		rel, err := created(ctx, management, "release.yaml", s)
		if err != nil {
			return "", "", err
		}
		s.OwnerUID = rel[0].GetUID()
		of, err := created(ctx, management, "targets.yaml", s)
		if err != nil {
			return "", "", err
		}
		targets[i] = of[0].GetUID()
	}
	was.OwnerUID, is.OwnerUID = targets[0], targets[1]
	for _, c := range applications {
		if err := install(ctx, c, was, is); err != nil {
			return "", "", err
		}
	}
	return was.Name, is.Name, nil
}

// sides are the two Releases.
func (r Rollout) sides(applications []*fleet.Cluster) (incumbent, contender side, err error) {
	incumbent = side{
		Rollout: r, Version: "0.0.1", PodVersion: "1", Tag: "stable", Achieved: "full on", Complete: true,
		Percent: 50, Weight: 50, Replicas: Total / 2, Enabled: Total / 2, Total: Total,
		StrategyConditions: []string{"ContenderAchievedCapacity", "ContenderAchievedInstallation", "ContenderAchievedTraffic"},
	}
	contender = incumbent
	contender.Version, contender.PodVersion, contender.Generation, contender.TargetStep = "0.0.2", "2", 1, 1
	contender.Achieved, contender.Complete = "50/50", false
	contender.StrategyConditions = append(slices.Clone(incumbent.StrategyConditions), "IncumbentAchievedCapacity", "IncumbentAchievedTraffic")
	if r.Stuck {
		incumbent.Percent, incumbent.Weight, incumbent.Replicas, incumbent.Enabled = 100, 100, Total, Total
		contender.Tag, contender.Achieved, contender.Weight, contender.Enabled = "broken", "", 0, 0
	}
	full := shipper.RolloutStrategyStep{Name: "full on"}
	full.Capacity.Contender, full.Traffic.Contender = 100, 100
	staging := shipper.RolloutStrategyStep{Name: "staging"}
	staging.Capacity, staging.Traffic.Incumbent = shipper.RolloutStrategyStepValue{Incumbent: 100, Contender: 1}, 100
	half := shipper.RolloutStrategyStep{Name: "50/50"}
	half.Capacity = shipper.RolloutStrategyStepValue{Incumbent: 50, Contender: 50}
	half.Traffic = half.Capacity
	for _, c := range applications {
		incumbent.Clusters = append(incumbent.Clusters, c.Name)
	}
	slices.Sort(incumbent.Clusters)
	contender.Clusters = incumbent.Clusters
	if err := incumbent.describe(full); err != nil {
		return incumbent, contender, err
	}
	return incumbent, contender, contender.describe(staging, half, full)
}

// describe gives the Release its environment and, by that, its name.
func (s *side) describe(steps ...shipper.RolloutStrategyStep) error {
	values := shipper.ChartValues{"replicaCount": int64(Total)}
	if s.Tag != "stable" {
		values["image"] = map[string]any{"tag": s.Tag}
	}
	env := shipper.ReleaseEnvironment{
		Chart:  shipper.Chart{Name: "test-nginx", Version: s.Version, RepoURL: s.Charts},
		Values: &values, Strategy: &shipper.RolloutStrategy{Steps: steps},
	}
	for _, region := range s.Regions {
		env.ClusterRequirements.Regions = append(env.ClusterRequirements.Regions, shipper.RegionRequirement{Name: region})
	}
	var err error
	if s.Hash, err = stamp.Hash(env); err != nil {
		return fmt.Errorf("hashing an environment: %w", err)
	}
	s.Name = fmt.Sprintf("%s-%s-0", s.App, s.Hash)
	for into, value := range map[*string]any{&s.Environment: env, &s.Values: values} {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing an environment: %w", err)
		}
		*into = string(raw)
	}
	return nil
}

// install leaves what was installed in an application cluster.
func install(ctx context.Context, in *fleet.Cluster, was, is side) error {
	for _, s := range []*side{&was, &is} {
		anchor, err := created(ctx, in, "anchor.yaml", *s)
		if err != nil {
			return err
		}
		s.AnchorUID = anchor[0].GetUID()
	}
	// The newest Release has taken the Service over.
	is.OtherAnchor, is.OtherAnchorUID = was.Name+"-anchor", was.AnchorUID
	for _, s := range []side{was, is} {
		if err := create(ctx, in, "installed.yaml", s); err != nil {
			return err
		}
	}
	c, err := in.Client(nil)
	if err != nil {
		return err
	}
	for _, s := range []side{was, is} {
		if err := s.shift(ctx, c); err != nil {
			return err
		}
	}
	return await(ctx, "rest in "+in.Name, func(ctx context.Context) (bool, error) {
		behind, err := in.Behind(ctx, was.Namespace)
		return len(behind) == 0, err
	})
}

// shift waits for the Pods of a Release and lets those have traffic that are to.
func (s side) shift(ctx context.Context, c client.Client) error {
	pods := &corev1.PodList{}
	err := await(ctx, "pods of "+s.Name, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: s.Name})
		settled := 0
		for i := range pods.Items {
			if len(pods.Items[i].Status.ContainerStatuses) > 0 {
				settled++
			}
		}
		return settled == s.Replicas, err
	})
	if err != nil {
		return err
	}
	for i := range s.Enabled {
		patch := fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/%s","value":%q}]`,
			shipper.TrafficStatusLabel, shipper.TrafficEnabled)
		if err := c.Patch(ctx, &pods.Items[i], client.RawPatch(types.JSONPatchType, patch)); err != nil {
			return fmt.Errorf("giving traffic to a Pod of %s: %w", s.Name, err)
		}
	}
	return nil
}
