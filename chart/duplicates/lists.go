// SPDX-License-Identifier: Apache-2.0

package duplicates

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// list is a list whose elements server-side apply tells apart by keys.
type list struct {
	// path leads to the list, from the object or the element of another list.
	path []string
	// keys are the fields that are different in each element; none in a list of texts or numbers.
	keys []string
	// whole is set if server-side apply does not tell its elements apart: only inner lists are looked at.
	whole bool
	// merge makes one of two elements that differ; nil where Kubernetes accepts no two elements with one key.
	merge merge
	// refer is set if the values of elements may refer to those before them.
	refer bool
	// inner are lists in each element.
	inner []list
}

// defaults are the values of keys that are left out.
var defaults = map[string]string{"protocol": string(corev1.ProtocolTCP)}

var (
	claims         = list{path: []string{"resources", "claims"}, keys: []string{"name", "request"}}
	containerLists = []list{
		{path: []string{"ports"}, keys: []string{"containerPort", "protocol"}, merge: onePort},
		{path: []string{"env"}, keys: []string{"name"}, merge: lastVariable, refer: true},
		{path: []string{"volumeMounts"}, keys: []string{"mountPath"}, inner: sets("bindMountOptions")},
		{path: []string{"volumeDevices"}, keys: []string{"devicePath"}},
		{path: []string{"restartPolicyRules"}, whole: true, inner: []list{{path: []string{"exitCodes", "values"}}}},
		claims,
	}
	podLists = []list{
		{path: []string{"containers"}, keys: []string{"name"}, inner: containerLists},
		{path: []string{"initContainers"}, keys: []string{"name"}, inner: containerLists},
		{path: []string{"ephemeralContainers"}, keys: []string{"name"}, inner: containerLists},
		{path: []string{"volumes"}, keys: []string{"name"}},
		{path: []string{"imagePullSecrets"}, keys: []string{"name"}, merge: last},
		{path: []string{"hostAliases"}, keys: []string{"ip"}, merge: allHostnames},
		{path: []string{"topologySpreadConstraints"}, keys: []string{"topologyKey", "whenUnsatisfiable"}},
		{path: []string{"schedulingGates"}, keys: []string{"name"}},
		{path: []string{"resourceClaims"}, keys: []string{"name"}},
		{path: []string{"evictionResponders"}, keys: []string{"name"}},
		claims,
	}
	jobLists = []list{
		{path: []string{"podFailurePolicy", "rules"}, whole: true, inner: []list{{path: []string{"onExitCodes", "values"}}}},
		{path: []string{"scheduling", "resourceClaims"}, keys: []string{"name"}},
	}
	conditions   = list{path: []string{"matchConditions"}, keys: []string{"name"}}
	webhookLists = []list{{path: []string{"webhooks"}, keys: []string{"name"}, inner: []list{conditions}}}
	policyLists  = within([]list{conditions, {path: []string{"variables"}, keys: []string{"name"}}}, "spec")
	flowRules    = []list{
		{path: []string{"resourceRules"}, whole: true, inner: sets("verbs", "apiGroups", "resources", "namespaces")},
		{path: []string{"nonResourceRules"}, whole: true, inner: sets("verbs", "nonResourceURLs")},
	}
	finalizers = list{path: []string{"metadata", "finalizers"}}
)

// podFields are where the kinds have the specification of a Pod.
var podFields = map[string][]string{
	"v1 Pod": {"spec"}, "v1 PodTemplate": {"template", "spec"}, "v1 ReplicationController": {"spec", "template", "spec"},
	"apps/v1 Deployment": {"spec", "template", "spec"}, "apps/v1 ReplicaSet": {"spec", "template", "spec"},
	"apps/v1 StatefulSet": {"spec", "template", "spec"}, "apps/v1 DaemonSet": {"spec", "template", "spec"},
	"batch/v1 Job": {"spec", "template", "spec"}, "batch/v1 CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
}

// otherLists are those of kinds outside Pods.
var otherLists = map[string][]list{
	"v1 Service":                                 {{path: []string{"spec", "ports"}, keys: []string{"port", "protocol"}}},
	"v1 ServiceAccount":                          {{path: []string{"secrets"}, keys: []string{"name"}, merge: last}},
	"batch/v1 Job":                               within(jobLists, "spec"),
	"batch/v1 CronJob":                           within(jobLists, "spec", "jobTemplate", "spec"),
	"storage.k8s.io/v1 CSIDriver":                within(sets("volumeLifecycleModes"), "spec"),
	"discovery.k8s.io/v1 EndpointSlice":          {{path: []string{"endpoints"}, whole: true, inner: sets("addresses")}},
	"flowcontrol.apiserver.k8s.io/v1 FlowSchema": {{path: []string{"spec", "rules"}, whole: true, inner: flowRules}},
	"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration":   webhookLists,
	"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration":     webhookLists,
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        policyLists,
	"admissionregistration.k8s.io/v1 MutatingAdmissionPolicy":          policyLists,
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": within(sets("validationActions"), "spec"),
}

// listsOf are the lists of an object. Custom resources have none: the API server accepts them only without duplicates.
func listsOf(o *unstructured.Unstructured) []list {
	kind := o.GetAPIVersion() + " " + o.GetKind()
	out := append([]list{finalizers}, otherLists[kind]...)
	if at := podFields[kind]; at != nil {
		out = append(out, within(podLists, at...)...)
	}
	return out
}

// sets are lists of texts.
func sets(fields ...string) []list {
	out := make([]list, len(fields))
	for i, field := range fields {
		out[i].path = []string{field}
	}
	return out
}

// within are lists in a field.
func within(lists []list, fields ...string) []list {
	out := make([]list, len(lists))
	for i, l := range lists {
		l.path = append(append([]string{}, fields...), l.path...)
		out[i] = l
	}
	return out
}
