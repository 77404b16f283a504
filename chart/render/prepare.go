// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// Prepare returns copies of the objects for installation, and refuses a chart that Shipper cannot roll out. Every object gets
// the labels of t and the name of its owner; the Deployment has no replicas, and the labels in its selector and on its Pods;
// one Service selects the Pods with traffic of all the Application's Releases, and at most one is for previews. Other Pods get no labels
// of Shipper. By Application, the objects are those of Lots.
func (m Manifest) Prepare(t Target) ([]unstructured.Unstructured, error) {
	switch {
	case m.nothing():
		return nil, nil
	case t.Naming == shipper.NamingByApplication:
		return m.prepareByApplication(t)
	}
	if err := m.checkDeployment(); err != nil {
		return nil, err
	}
	deployment, err := m.deployment()
	if err != nil {
		return nil, err
	}
	service, err := m.trafficService()
	if err != nil {
		return nil, err
	}
	preview, err := m.previewService()
	if err != nil {
		return nil, err
	}
	prepared := make([]unstructured.Unstructured, len(m.Objects))
	for i := range m.Objects {
		o := m.Objects[i].DeepCopy()
		if err := checkNamespace(o, m.source(i), t.Namespace); err != nil {
			return nil, err
		}
		removeMarks(o)
		if i == deployment { // prepareDeployment overwrites Shipper's labels in the template, or refuses them
			removeKeys(o.Object, isReservedAnnotation, "spec", "template", "metadata", "annotations")
		} else if err := removeReserved(o, m.source(i), t); err != nil {
			return nil, err
		}
		if err := t.labelObject(o); err != nil {
			return nil, chartError("%s: %s", m.source(i), err)
		}
		prepared[i] = *o
	}
	if err := prepareDeployment(&prepared[deployment], m.source(deployment), t); err != nil {
		return nil, err
	}
	pods := podLabels(&prepared[deployment])
	if err := prepareService(&prepared[service], shipper.LBForProduction, m.source(service), t, pods); err != nil {
		return nil, err
	}
	if preview >= 0 {
		if err := prepareService(&prepared[preview], shipper.LBForPreview, m.source(preview), t, pods); err != nil {
			return nil, err
		}
	}
	return prepared, nil
}

// clusterScoped are the built-in kinds that have no namespace.
var clusterScoped = map[string]bool{
	"APIService": true, "CertificateSigningRequest": true, "ClusterRole": true, "ClusterRoleBinding": true,
	"ClusterTrustBundle": true, "ComponentStatus": true, "CSIDriver": true, "CSINode": true,
	"CustomResourceDefinition": true,
	"DeviceClass":              true, "FlowSchema": true, "IngressClass": true, "IPAddress": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true, "MutatingWebhookConfiguration": true, "Namespace": true, "Node": true,
	"PersistentVolume": true, "PodSecurityPolicy": true, "PriorityClass": true, "PriorityLevelConfiguration": true,
	"ResourceSlice": true, "RuntimeClass": true, "SelfSubjectAccessReview": true, "SelfSubjectReview": true,
	"SelfSubjectRulesReview": true, "ServiceCIDR": true, "StorageClass": true, "StorageVersion": true,
	"StorageVersionMigration": true, "SubjectAccessReview": true, "TokenReview": true, "ValidatingAdmissionPolicy": true,
	"ValidatingAdmissionPolicyBinding": true, "ValidatingWebhookConfiguration": true, "VolumeAttachment": true,
	"VolumeAttributesClass": true,
}

// checkNamespace refuses an object in another namespace than the release's, if its kind is known to be namespaced. For a custom
// kind only the cluster knows that.
func checkNamespace(o *unstructured.Unstructured, what, namespace string) error {
	asked := o.GetNamespace()
	if asked == "" || asked == namespace || !builtin(o.GroupVersionKind()) || clusterScoped[o.GetKind()] {
		return nil
	}
	return chartError("%s asks for the namespace %q, but a release is installed in its own namespace %q; "+
		"leave metadata.namespace out, or use {{ .Release.Namespace }}", what, chart.Shorten(asked), namespace)
}

// builtin reports whether a kind is built into Kubernetes, by its group.
func builtin(gvk schema.GroupVersionKind) bool {
	switch gvk.Group {
	case "", "apps", "autoscaling", "batch", "extensions", "policy":
		return true
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	default:
		return false
	}
}
