// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Application is one of a web server, in the first clusters. Its namespace is its own: the chart's Service has always one name.
func (w *World) Application(namespace string, clusters int, replicas int32, steps ...shipper.RolloutStrategyStep) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas), "upgrade": int64(0)} // nothing reads upgrade, but it makes a Release
	env := shipper.ReleaseEnvironment{
		Chart:    shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: w.Charts.URL},
		Values:   &values,
		Strategy: &shipper.RolloutStrategy{Steps: steps},
	}
	for i := range clusters {
		env.ClusterRequirements.Regions = append(env.ClusterRequirements.Regions, shipper.RegionRequirement{Name: Region(i)})
	}
	return &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}, Spec: shipper.ApplicationSpec{Template: env},
	}
}

// Step is one of a strategy: how much the incumbent and the contender have of capacity and of traffic, in percent.
func Step(name string, capacityOld, capacityNew, trafficOld, trafficNew int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: capacityOld, Contender: capacityNew},
		Traffic:  shipper.RolloutStrategyStepValue{Incumbent: trafficOld, Contender: trafficNew},
	}
}

// Upgrade makes the n-th Release of an Application after its first.
func (w *World) Upgrade(ctx context.Context, of client.ObjectKey, n int, steps ...shipper.RolloutStrategyStep) error {
	return w.UpgradeBy(ctx, of, n, shipper.RolloutStrategy{Steps: steps})
}

// UpgradeBy is Upgrade with a whole strategy.
func (w *World) UpgradeBy(ctx context.Context, of client.ObjectKey, n int, strategy shipper.RolloutStrategy) error {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"values": map[string]any{"upgrade": n}, "strategy": strategy,
	}}})
	if err != nil {
		return fmt.Errorf("upgrading %s: %w", of, err)
	}
	return w.Management.Patch(ctx, app, client.RawPatch(types.MergePatchType, patch))
}

// Advance asks for a step of a Release.
func (w *World) Advance(ctx context.Context, rel *shipper.Release, step int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	return w.Management.Patch(ctx, rel, client.RawPatch(types.MergePatchType, patch))
}
