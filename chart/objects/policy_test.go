// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRefusedKindsAndNamespaces(t *testing.T) {
	kind := func(reason string) *Refusal { return &Refusal{"kind", reason} }
	const (
		calls   = "reviews are calls, not objects"
		metrics = "metrics are measurements of one cluster"
		ours    = "it is Shipper's own namespace"
		kubes   = "namespaces with the prefix kube- belong to Kubernetes"
	)
	for _, c := range []struct {
		apiVersion, kind, namespace, name string
		want                              *Refusal
	}{
		{"v1", "Pod", "work", "", kind("Pods are made by what owns them: select that")},
		{"v1", "Node", "", "a", kind("Nodes are the machines of one cluster")},
		{"v1", "Event", "work", "", kind("Events are records of one cluster")},
		{"events.k8s.io/v1", "Event", "work", "", kind("Events are records of one cluster")},
		{"v1", "Endpoints", "work", "", kind("Endpoints are made for Services: select the Service")},
		{"discovery.k8s.io/v1", "EndpointSlice", "work", "", kind("EndpointSlices are made for Services: select the Service")},
		{"coordination.k8s.io/v1", "Lease", "work", "", kind("Leases are locks of the processes of one cluster")},
		{"coordination.k8s.io/v1alpha2", "LeaseCandidate", "work", "", kind("Leases are locks of the processes of one cluster")},
		{"apps/v1", "ControllerRevision", "work", "", kind("ControllerRevisions are made by StatefulSets and DaemonSets: select those")},
		{"metrics.k8s.io/v1beta1", "PodMetrics", "work", "", kind(metrics)},
		{"custom.metrics.k8s.io/v1beta2", "MetricValue", "work", "", kind(metrics)},
		{"external.metrics.k8s.io/v1beta1", "ExternalMetricValue", "work", "", kind(metrics)},
		{"storage.k8s.io/v1", "CSINode", "", "",
			kind("CSINodes, CSIStorageCapacities and VolumeAttachments describe the storage of one cluster")},
		{"authentication.k8s.io/v1", "TokenReview", "", "", kind("reviews and token requests are calls, not objects")},
		{"authorization.k8s.io/v1", "SubjectAccessReview", "", "", kind(calls)},
		{"v1", "Binding", "work", "", kind("Bindings and ComponentStatuses are not stored")},
		{"shipper.booking.com/v1alpha1", "Release", "work", "a", kind("Release is a kind of Shipper, and of those only Envelopes are placed")},
		{"shipper.booking.com/v1alpha1", "Envelope", "work", "a", nil},
		{"v1", "Namespace", "", "default", &Refusal{"name", "each cluster has its own default namespace: move the content to another one"}},
		{"v1", "ConfigMap", "default", "a",
			&Refusal{"namespace", "each cluster has its own default namespace: move the content to another one"}},
		{"v1", "Namespace", "", "kube-system", &Refusal{"name", kubes}},
		{"v1", "ConfigMap", "kube-public", "", &Refusal{"namespace", kubes}},
		{"v1", "Secret", "shipper-system", "a", &Refusal{"namespace", ours}},
		{"v1", "Namespace", "", "rollout-blocks-global", &Refusal{"name", ours}},
		{"v1", "ConfigMap", "shipper-checks", "", &Refusal{"namespace", ours}},
		{"shipper.booking.com/v1alpha1", "Envelope", "kube-system", "a", &Refusal{"namespace", kubes}},
		{"v1", "Namespace", "", "", nil},
		{"v1", "Namespace", "", "shipper-demo", nil},
		{"v1", "Namespace", "", "kubeflow", nil},
		{"v1", "Secret", "work", "a", nil},
		{"apps/v1", "ReplicaSet", "work", "a", nil},
		{"apiregistration.k8s.io/v1", "APIService", "", "v1.example.com", nil},
		{"storage.k8s.io/v1", "StorageClass", "", "fast", nil},
		{"example.com/v1", "Pod", "work", "a", nil},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "default", nil},
	} {
		got := Policy{}.Refused(schema.FromAPIVersionAndKind(c.apiVersion, c.kind), c.namespace, c.name)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s %s/%s: %s", c.apiVersion, c.kind, c.namespace, c.name, diff)
		}
	}
}

func TestPolicyOfAdministrators(t *testing.T) {
	const config, deployment, widget = "ConfigMap", "Deployment.apps", "Widget.example.com"
	for name, c := range map[string]struct {
		options PolicyOptions
		// refused has the kinds that may not be placed in the namespace work, and the namespaces.
		refused []string
	}{
		"nothing":           {PolicyOptions{}, nil},
		"placeable":         {PolicyOptions{PlaceableKinds: " ConfigMap, Deployment.apps,"}, []string{widget}},
		"placeable group":   {PolicyOptions{PlaceableKinds: "*.example.com"}, []string{config, deployment}},
		"unplaceable":       {PolicyOptions{UnplaceableKinds: "ConfigMap,Widget.example.com"}, []string{config, widget}},
		"unplaceable group": {PolicyOptions{UnplaceableKinds: "*.apps"}, []string{deployment}},
		"namespaces":        {PolicyOptions{UnplaceableNamespaces: "team-*, vault"}, []string{"team-a", "team-", "vault"}},
	} {
		p, err := ParsePolicy(c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var refused []string
		for _, text := range []string{config, deployment, widget} {
			refusal := p.Refused(schema.ParseGroupKind(text).WithVersion("v1"), "work", "a")
			if refusal == nil {
				continue
			}
			refused = append(refused, text)
			if diff := cmp.Diff(&Refusal{"kind", "the administrators of Shipper do not allow " + text + " to be placed"}, refusal); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		for _, in := range []string{"team", "team-a", "team-", "vault", "vault-a"} {
			secret := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
			refusal := p.Refused(secret, in, "a")
			if refusal == nil || refusal.Field == "kind" {
				continue
			}
			refused = append(refused, in)
			want := &Refusal{"namespace", "the administrators of Shipper do not allow namespace " + in + " to be placed"}
			if diff := cmp.Diff(want, refusal); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if diff := cmp.Diff(c.refused, refused); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAdministratorsCannotAllowWhatIsNeverPlaced(t *testing.T) {
	p, err := ParsePolicy(PolicyOptions{PlaceableKinds: "Pod,*.shipper.booking.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "shipper.booking.com", Version: "v1alpha1", Kind: "Release"},
	} {
		if p.Refused(gvk, "work", "") == nil {
			t.Errorf("%s may be placed", gvk)
		}
	}
}

func TestNamespacesOfShipperAreNeverPlacedWhateverTheirNames(t *testing.T) {
	p, err := ParsePolicy(PolicyOptions{}, "platform-delivery", "")
	if err != nil {
		t.Fatal(err)
	}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	for _, name := range []string{"platform-delivery", shipper.SystemNamespace} {
		if p.Refused(secret, name, "") == nil {
			t.Errorf("Secrets of %s may be placed", name)
		}
	}
	if r := p.Refused(secret, "work", ""); r != nil {
		t.Errorf("Secrets of work may not be placed: %s", r.Reason)
	}
}

func TestParsePolicyNamesTheFlag(t *testing.T) {
	const kinds = " is not a kind such as ConfigMap or Deployment.apps, nor a group such as *.example.com"
	const namespaces = " is neither the name of a namespace nor a prefix such as team-*"
	for _, c := range []struct {
		options PolicyOptions
		want    string
	}{
		{PolicyOptions{PlaceableKinds: "deployments"}, `--placeable-kinds: "deployments"` + kinds},
		{PolicyOptions{PlaceableKinds: "*"}, `--placeable-kinds: "*"` + kinds},
		{PolicyOptions{UnplaceableKinds: "ConfigMap,apps/v1"}, `--unplaceable-kinds: "apps/v1"` + kinds},
		{PolicyOptions{UnplaceableKinds: "Deployment.Apps"}, `--unplaceable-kinds: "Deployment.Apps"` + kinds},
		{PolicyOptions{PlaceableKinds: "Secret", UnplaceableKinds: "ConfigMap"},
			"--placeable-kinds and --unplaceable-kinds: at most one of the two"},
		{PolicyOptions{UnplaceableNamespaces: "Team"}, `--unplaceable-namespaces: "Team"` + namespaces},
		{PolicyOptions{UnplaceableNamespaces: "*"}, `--unplaceable-namespaces: "*"` + namespaces},
		{PolicyOptions{UnplaceableNamespaces: "team-"}, `--unplaceable-namespaces: "team-"` + namespaces},
		{PolicyOptions{UnplaceableNamespaces: "*-team"}, `--unplaceable-namespaces: "*-team"` + namespaces},
	} {
		_, err := ParsePolicy(c.options)
		if err == nil {
			t.Errorf("%+v is accepted", c.options)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSkipLeavesOutWhatEachClusterMakes(t *testing.T) {
	const own, here = "the API server of each cluster makes its own", "it is a token for this cluster"
	const ours = "it gives rights to Shipper's own accounts, and so to every tenant's chart"
	const granted = "its roleRef gives its subjects the right to write what administrators have granted to Shipper by name"
	const admission = "names that end in shipper.booking.com are those of Shipper's own webhooks and policies"
	for _, c := range []struct{ text, want string }{
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: work}}`,
			"each cluster publishes its own certificate authority"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-anchor, namespace: work}, data: {InstallationTargetUID: 8f0e}}`,
			"it is Shipper's record of what is installed in this cluster"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work,
			annotations: {control-plane.alpha.kubernetes.io/leader: "{}"}}}`,
			"it is a lock of the processes of one cluster"},
		{`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: work}}`, "each namespace of each cluster has its own"},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: kubernetes.io/service-account-token}`, here},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: bootstrap.kubernetes.io/token}`, here},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: helm.sh/release.v1}`,
			"it is Helm's record of what is installed in this cluster"},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: shipper.booking.com/values}`,
			"it is Shipper's record of a Release"},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: shipper.booking.com/resources}`,
			"it is Shipper's record of a Release"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work, deletionTimestamp: "2026-01-02T03:04:05Z"}}`,
			"it is being deleted"},
		{`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: work, ownerReferences: [
			{apiVersion: apps/v1, kind: Deployment, name: web, uid: 8f0e, controller: true}]}}`, "it is made by its owner, Deployment web"},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: work, 
			labels: {shipper-app: web, shipper-owned-by: web-5c1f-0}}}`,
			`the Application "web" installs it here`},
		{`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: work}}`, "Pods are made by what owns them: select that"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: kube-system}}`,
			"namespaces with the prefix kube- belong to Kubernetes"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, 
			labels: {kubernetes.io/bootstrapping: rbac-defaults}}}`,
			own},
		{`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps,
			labels: {kube-aggregator.kubernetes.io/automanaged: onstart}}}`, own},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: shipper-selector}}`, "it lets Shipper take what is in this namespace"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: shipper-values-keeper}}`, "it lets Shipper take what is in this namespace"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: shipper-namespace-reader}}`, "it is a right of Shipper in the management cluster"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: shipper-runner-impersonator}}`, "it is a right of Shipper in the management cluster"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: view}}`, ""},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a,
			labels: {shipper.booking.com/aggregate-to-application: "true"}}}`, "its label shipper.booking.com/aggregate-to-application gives " +
			"its rights to Shipper's own account, and so to every tenant's chart"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "shipper:grant:clusterroles.x:a"}}`,
			"names with the prefix shipper: are those of Shipper's own rights"},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
			subjects: [{kind: ServiceAccount, namespace: work, name: a}, {kind: ServiceAccount, namespace: shipper-system, name: any}]}`, ours},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			subjects: [{kind: User, name: "system:serviceaccount:shipper-system:shipper-app-cluster"}]}`, ours},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
			subjects: [{kind: Group, name: "system:serviceaccounts:shipper-system"}]}`, ours},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
			subjects: [{kind: ServiceAccount, namespace: work, name: shipper-app-cluster}]}`, ""},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
			roleRef: {kind: ClusterRole, name: "shipper:grant:validatingwebhookconfigurations.admissionregistration.k8s.io:guard"},
			subjects: [{kind: User, name: mallory}]}`, granted},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: "shipper:grant-read:clusterroles.rbac.authorization.k8s.io:monitoring"}}`, granted},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: work},
			roleRef: {kind: ClusterRole, name: "shipper:edit"}, subjects: [{kind: User, name: dev}]}`, ""},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a},
			roleRef: {kind: ClusterRole, name: monitoring}, subjects: [{kind: User, name: dev}]}`, ""},
		{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: shipper.booking.com}}`,
			admission},
		{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding,
			metadata: {name: pods.guard.shipper.booking.com}}`, admission},
		{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: of-shipper.booking.com}}`, ""},
		{`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.shipper.booking.com}}`, ""},
		{`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-node-critical}}`, own},
		{`{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: exempt,
			annotations: {apf.kubernetes.io/autoupdate-spec: "true"}}}`, own},

		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work}, data: {k: v}}`, ""},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: default, namespace: work}}`, ""},
		{`{apiVersion: v1, kind: Secret, metadata: {name: kube-root-ca.crt, namespace: work}}`, ""},
		{`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: work}}`, ""},
		{`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: work}, type: Opaque}`, ""},
		{`{apiVersion: example.com/v1, kind: Secret, metadata: {name: a, namespace: work}, type: helm.sh/release.v1}`, ""},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work, ownerReferences: [
			{apiVersion: v1, kind: ConfigMap, name: parent, uid: 8f0e}]}}`, ""},
		{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: work, labels: {shipper-app: web}}}`, ""},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}`, ""},
		{`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}}`, ""},
		{`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}}`, ""},
		{`{apiVersion: shipper.booking.com/v1alpha1, kind: Envelope, metadata: {name: a, namespace: work}}`, ""},
	} {
		o := object(t, c.text)
		reason, skip := Policy{}.Skip(&o)
		if diff := cmp.Diff(c.want, reason); diff != "" || skip != (c.want != "") {
			t.Errorf("%s: %v %s", c.text, skip, diff)
		}
	}
}
