// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// skipRule gives the reason why an object is left out; empty for none.
type skipRule func(*unstructured.Unstructured) string

var (
	// liveSkipRules are for what the API server says of a live object. Manifests lose these fields.
	liveSkipRules = []skipRule{skipDeleted, skipControlled, skipInstalled}
	// ownSkipRules are for what each cluster has of its own, whether an object is live or a manifest.
	ownSkipRules = []skipRule{skipSecret, skipConfigMap, skipServiceAccount, skipRoleBinding, skipOwnRights, skipBuiltIn}
)

// OwnOfCluster is why an object or a manifest is never placed: each cluster has its own. It is empty for what may be placed.
func OwnOfCluster(o *unstructured.Unstructured) (reason string) {
	return firstReason(ownSkipRules, o)
}

func firstReason(of []skipRule, o *unstructured.Unstructured) string {
	for _, r := range of {
		if reason := r(o); reason != "" {
			return reason
		}
	}
	return ""
}

func skipDeleted(o *unstructured.Unstructured) string {
	if o.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	return ""
}

// skipControlled leaves out ReplicaSets of Deployments, Jobs of CronJobs and the like.
func skipControlled(o *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return fmt.Sprintf("it is made by its owner, %s %s", owner.Kind, owner.Name)
	}
	return ""
}

// skipInstalled leaves out what Shipper installs of charts if the management cluster is also an application cluster.
func skipInstalled(o *unstructured.Unstructured) string {
	if o.GetLabels()[shipper.OwnedByLabel] != "" {
		return fmt.Sprintf("the Application %q installs it here", o.GetLabels()[shipper.AppLabel])
	}
	return ""
}

// secretTypes are the types of Secrets that are left out.
var secretTypes = map[string]string{
	"kubernetes.io/service-account-token": "it is a token for this cluster",
	"bootstrap.kubernetes.io/token":       "it is a token for this cluster",
	"helm.sh/release.v1":                  "it is Helm's record of what is installed in this cluster",
	shipper.ValuesSecretType:              "it is Shipper's record of a Release",
	shipper.ResourcesSecretType:           "it is Shipper's record of a Release",
}

func skipSecret(o *unstructured.Unstructured) string {
	if KeyOf(o).GroupKind() != secret {
		return ""
	}
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	return secretTypes[kind]
}

func skipConfigMap(o *unstructured.Unstructured) string {
	_, isAnchor, _ := unstructured.NestedString(o.Object, "data", shipper.AnchorTargetUIDKey)
	_, isLock := o.GetAnnotations()["control-plane.alpha.kubernetes.io/leader"]
	switch {
	case KeyOf(o).GroupKind() != configMap:
		return ""
	case o.GetName() == "kube-root-ca.crt":
		return "each cluster publishes its own certificate authority"
	case isAnchor:
		return "it is Shipper's record of what is installed in this cluster"
	case isLock:
		return "it is a lock of the processes of one cluster"
	}
	return ""
}

func skipServiceAccount(o *unstructured.Unstructured) string {
	if KeyOf(o).GroupKind() == serviceAccount && o.GetName() == "default" {
		return "each namespace of each cluster has its own"
	}
	return ""
}

// skipRoleBinding leaves out Shipper's own rights in a namespace, which the management cluster alone has.
func skipRoleBinding(o *unstructured.Unstructured) string {
	role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
	switch {
	case KeyOf(o).GroupKind() != roleBinding:
		return ""
	case role == shipper.ResourceSelectorRole, role == shipper.ValuesKeeper:
		return "it lets Shipper take what is in this namespace"
	case role == shipper.NamespaceReader, role == shipper.RunnerImpersonatorRole:
		return "it is a right of Shipper in the management cluster"
	}
	return ""
}

// skipBuiltIn leaves out objects without a namespace that every API server makes. All of a kind would select them too.
func skipBuiltIn(o *unstructured.Unstructured) string {
	const own = "the API server of each cluster makes its own"
	switch gk := KeyOf(o).GroupKind(); {
	case o.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults",
		gk == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"} &&
			o.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != "",
		gk == schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"} && strings.HasPrefix(o.GetName(), "system-"),
		gk.Group == "flowcontrol.apiserver.k8s.io" && o.GetAnnotations()["apf.kubernetes.io/autoupdate-spec"] != "":
		return own
	}
	return ""
}
