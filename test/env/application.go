// SPDX-License-Identifier: Apache-2.0

package env

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Strategy is a list of steps: what the incumbent and the contender have of capacity in percent, and of traffic as weights.
type Strategy []struct {
	Name                                 string
	IncumbentCapacity, ContenderCapacity int32
	IncumbentTraffic, ContenderTraffic   int32
}

// AllIn is the strategy of one step.
func AllIn() Strategy { return Strategy{{"full on", 0, 100, 0, 100}} }

// Vanguard is the strategy of the original's documents: one Pod, then half, then all.
func Vanguard() Strategy {
	return Strategy{{"staging", 100, 1, 100, 0}, {"50/50", 50, 50, 50, 50}, {"full on", 0, 100, 0, 100}}
}

// Steps are the steps as they are in a Release.
func (s Strategy) Steps() []shipper.RolloutStrategyStep {
	out := make([]shipper.RolloutStrategyStep, 0, len(s))
	for _, step := range s {
		out = append(out, shipper.RolloutStrategyStep{
			Name:     step.Name,
			Capacity: shipper.RolloutStrategyStepValue{Incumbent: step.IncumbentCapacity, Contender: step.ContenderCapacity},
			Traffic:  shipper.RolloutStrategyStepValue{Incumbent: step.IncumbentTraffic, Contender: step.ContenderTraffic},
		})
	}
	return out
}

// Application is an Application of test/charts' chart test-nginx, in the default repository of e, for the regions given.
func (e *Env) Application(namespace, name, version string, replicas int, steps Strategy, regions ...string) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas)}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	app.Spec.Template = shipper.ReleaseEnvironment{
		Chart:    shipper.Chart{Name: "test-nginx", Version: version, RepoURL: e.Charts.URL},
		Values:   &values,
		Strategy: &shipper.RolloutStrategy{Steps: steps.Steps()},
	}
	for _, region := range regions {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: region})
	}
	return app
}
