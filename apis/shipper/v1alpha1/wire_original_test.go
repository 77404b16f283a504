// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The original Shipper's types, field by field as its clients encode and decode them. They are separate from ours, so that a
// test fails when its clients could not read a change of ours.

type originalApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		RevisionHistoryLimit *int32              `json:"revisionHistoryLimit,omitempty"`
		Template             originalEnvironment `json:"template"`
	} `json:"spec"`
	Status struct {
		Conditions []originalCondition `json:"conditions,omitempty"`
		History    []string            `json:"history,omitempty"`
	} `json:"status"`
}

type originalEnvironment struct {
	Chart               originalChart   `json:"chart"`
	Values              *map[string]any `json:"values"`
	ClusterRequirements struct {
		Regions []struct {
			Name     string `json:"name"`
			Replicas *int32 `json:"replicas,omitempty"`
		} `json:"regions"`
		Capabilities []string `json:"capabilities,omitempty"`
	} `json:"clusterRequirements"`
	Strategy *struct {
		Steps []struct {
			Name     string            `json:"name"`
			Capacity originalStepValue `json:"capacity"`
			Traffic  originalStepValue `json:"traffic"`
		} `json:"steps"`
	} `json:"strategy,omitempty"`
}

type originalChart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	RepoURL string `json:"repoUrl"`
}

type originalStepValue struct {
	Incumbent int32 `json:"incumbent"`
	Contender int32 `json:"contender"`
}

type originalCondition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
}

type originalRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		TargetStep  int32               `json:"targetStep"`
		Environment originalEnvironment `json:"environment"`
	} `json:"spec"`
	Status struct {
		AchievedStep *struct {
			Step int32  `json:"step"`
			Name string `json:"name"`
		} `json:"achievedStep,omitempty"`
		Strategy *struct {
			State struct {
				WaitingForInstallation string `json:"waitingForInstallation"`
				WaitingForCapacity     string `json:"waitingForCapacity"`
				WaitingForTraffic      string `json:"waitingForTraffic"`
				WaitingForCommand      string `json:"waitingForCommand"`
			} `json:"state,omitempty"`
			Conditions []struct {
				originalCondition `json:",inline"`
				Step              int32 `json:"step,omitempty"`
			} `json:"conditions,omitempty"`
		} `json:"strategy,omitempty"`
		Conditions []originalCondition `json:"conditions,omitempty"`
	} `json:"status"`
}

type originalInstallationTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Clusters    []string        `json:"clusters"`
		CanOverride bool            `json:"canOverride"`
		Chart       *originalChart  `json:"chart,omitempty"`
		Values      *map[string]any `json:"values,omitempty"`
	} `json:"spec"`
	Status struct {
		Clusters []struct {
			Name       string              `json:"name"`
			Conditions []originalCondition `json:"conditions,omitempty"`
		} `json:"clusters,omitempty"`
		Conditions []originalCondition `json:"conditions,omitempty"`
	} `json:"status"`
}

type originalCapacityTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Clusters []struct {
			Name              string `json:"name"`
			Percent           int32  `json:"percent"`
			TotalReplicaCount int32  `json:"totalReplicaCount"`
		} `json:"clusters"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration,omitempty"`
		Clusters           []struct {
			Name              string              `json:"name"`
			AvailableReplicas int32               `json:"availableReplicas"`
			AchievedPercent   int32               `json:"achievedPercent"`
			SadPods           []originalSadPod    `json:"sadPods,omitempty"`
			Conditions        []originalCondition `json:"conditions,omitempty"`
			Reports           []originalReport    `json:"reports,omitempty"`
		} `json:"clusters,omitempty"`
		Conditions []originalCondition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

type originalSadPod struct {
	Name           string                   `json:"name"`
	Containers     []corev1.ContainerStatus `json:"containers"`
	InitContainers []corev1.ContainerStatus `json:"initContainers"`
	Condition      corev1.PodCondition      `json:"condition"`
}

type originalReport struct {
	Owner struct {
		Name string `json:"name"`
	} `json:"owner"`
	Breakdown []struct {
		Type       string `json:"type"`
		Status     string `json:"status"`
		Reason     string `json:"reason"`
		Count      int32  `json:"count"`
		Containers []struct {
			Name   string `json:"name"`
			States []struct {
				Count   int32  `json:"count"`
				Type    string `json:"type"`
				Reason  string `json:"reason"`
				Example struct {
					Pod     string `json:"pod"`
					Message string `json:"message"`
				} `json:"example"`
			} `json:"states"`
		} `json:"containers"`
	} `json:"breakdown"`
}

type originalTrafficTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Clusters []struct {
			Name   string `json:"name"`
			Weight uint32 `json:"weight"`
		} `json:"clusters"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration,omitempty"`
		Clusters           []struct {
			Name            string              `json:"name"`
			AchievedTraffic uint32              `json:"achievedTraffic"`
			Conditions      []originalCondition `json:"conditions"`
		} `json:"clusters,omitempty"`
		Conditions []originalCondition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

type originalCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Capabilities []string `json:"capabilities"`
		Region       string   `json:"region"`
		APIMaster    string   `json:"apiMaster"`
		Scheduler    struct {
			Unschedulable bool    `json:"unschedulable"`
			Weight        *int32  `json:"weight,omitempty"`
			Identity      *string `json:"identity,omitempty"`
		} `json:"scheduler"`
	} `json:"spec"`
	Status struct {
		InService bool `json:"inService"`
	} `json:"status"`
}

type originalRolloutBlock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Message string `json:"message"`
		Author  struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"author"`
	} `json:"spec"`
	Status struct {
		Overrides struct {
			Release     string `json:"release"`
			Application string `json:"application"`
		} `json:"overrides"`
	} `json:"status"`
}
