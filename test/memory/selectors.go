// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectable are the fields, besides metadata.name and metadata.namespace, that requests may select kinds of Kubernetes by.
var selectable = map[string][]string{
	"Pod": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
		"status.podIP", "status.nominatedNodeName",
	},
	"Secret":    {"type"},
	"Namespace": {"status.phase", "name"},
	"Node":      {"spec.unschedulable"},
	"Service":   {"spec.clusterIP", "spec.type"},
	"Job":       {"status.successful"},
}

// addSelectors has requests by other fields refused, as Kubernetes refuses them.
func addSelectors(s *runtime.Scheme) {
	for kind, known := range selectable {
		gv := corev1.SchemeGroupVersion
		if kind == "Job" {
			gv = batchv1.SchemeGroupVersion
		}
		err := s.AddFieldLabelConversionFunc(gv.WithKind(kind), func(label, value string) (string, string, error) {
			if label == "metadata.name" || label == "metadata.namespace" || slices.Contains(known, label) {
				return label, value, nil
			}
			return "", "", fmt.Errorf("field label not supported: %s", label)
		})
		if err != nil {
			panic(err) // the kind is registered
		}
	}
}

// convertField checks that a kind can be selected by a field.
func (k Kind) convertField(label, value string) (string, string, error) {
	if !k.custom() {
		return builtin.ConvertFieldLabel(k.gvk(), label, value)
	}
	s, err := serve(k)
	if err != nil {
		return "", "", err
	}
	return s.converter.ConvertFieldLabel(k.gvk(), label, value)
}

// attributes returns what an object is selected by.
func (k Kind) attributes(o runtime.Object) (labels.Set, fields.Set, error) {
	if k.custom() {
		s, err := serve(k)
		if err != nil {
			return nil, nil, err
		}
		return s.attributes(o)
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, nil, fmt.Errorf("reading metadata: %w", err)
	}
	set := fields.Set{"metadata.name": m.GetName()}
	if !k.Cluster {
		set["metadata.namespace"] = m.GetNamespace()
	}
	switch o := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"], set["spec.restartPolicy"] = o.Spec.NodeName, string(o.Spec.RestartPolicy)
		set["spec.schedulerName"], set["spec.serviceAccountName"] = o.Spec.SchedulerName, o.Spec.ServiceAccountName
		set["spec.hostNetwork"], set["status.phase"] = strconv.FormatBool(o.Spec.HostNetwork), string(o.Status.Phase)
		set["status.podIP"], set["status.nominatedNodeName"] = o.Status.PodIP, o.Status.NominatedNodeName
	case *corev1.Secret:
		set["type"] = string(o.Type)
	case *corev1.Namespace:
		set["status.phase"], set["name"] = string(o.Status.Phase), o.Name
	case *corev1.Node:
		set["spec.unschedulable"] = strconv.FormatBool(o.Spec.Unschedulable)
	case *corev1.Service:
		set["spec.clusterIP"], set["spec.type"] = o.Spec.ClusterIP, string(o.Spec.Type)
	case *batchv1.Job:
		set["status.successful"] = strconv.Itoa(int(o.Status.Succeeded))
	}
	return labels.Set(m.GetLabels()), set, nil
}
