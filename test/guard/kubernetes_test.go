// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAttemptsOfKubernetes tries what parts of Kubernetes do, as the accounts they have, with their own rights.
func TestAttemptsOfKubernetes(t *testing.T) {
	s := newShop(t)
	const label = `{"metadata":{"labels":{%q:%s}}}`
	kube := func(name string) client.Client { return account(t, "kube-system", name) }
	node := as(t, "system:node:"+cluster+"-1", "system:nodes", "system:masters")
	byController := s.pod.DeepCopy()
	byController.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: "another", Labels: s.pod.Labels}
	byController.Spec.NodeName = ""
	newSet := s.replicaSet.DeepCopy()
	newSet.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: "another", Labels: s.replicaSet.Labels}
	for _, a := range []struct {
		attempt
		who client.Client
	}{
		{attempt{"the deployment controller scales a ReplicaSet", func(ctx context.Context, c client.Client) error {
			rs := s.replicaSet.DeepCopy()
			*rs.Spec.Replicas = 2
			return c.Update(ctx, rs)
		}, ""}, kube("deployment-controller")},
		{attempt{"the deployment controller makes a ReplicaSet", makes(newSet), ""}, kube("deployment-controller")},
		{attempt{"the replica set controller makes a Pod", makes(byController), ""}, kube("replicaset-controller")},
		{attempt{"the replica set controller lets go of a Pod",
			patches(s.pod, "", `{"metadata":{"ownerReferences":null}}`), ""}, kube("replicaset-controller")},
		{attempt{"the job controller makes a Pod", makes(byController), ""}, kube("job-controller")},
		{attempt{"the stateful set controller makes a Pod", makes(byController), ""}, kube("statefulset-controller")},
		{attempt{"the daemon set controller makes a Pod", makes(byController), ""}, kube("daemon-set-controller")},
		{attempt{"the garbage collector lets go of a Deployment",
			patches(s.deployment, "", `{"metadata":{"ownerReferences":null,"finalizers":null}}`), ""}, kube("generic-garbage-collector")},
		{attempt{"the garbage collector lets go of a ReplicaSet",
			patches(s.replicaSet, "", `{"metadata":{"ownerReferences":null,"finalizers":null}}`), ""}, kube("generic-garbage-collector")},
		{attempt{"the garbage collector lets go of a Pod",
			patches(s.pod, "", `{"metadata":{"ownerReferences":null,"finalizers":null}}`), ""}, kube("generic-garbage-collector")},
		{attempt{"the garbage collector deletes a Pod", removes(s.pod), ""}, kube("generic-garbage-collector")},
		{attempt{"the endpoint slice controller writes an EndpointSlice", makes(anEndpointSlice(s.Namespace, s.service.Name)), ""},
			kube("endpointslice-controller")},
		{attempt{"the endpoint slice controller changes an EndpointSlice", func(ctx context.Context, c client.Client) error {
			slice := s.slice.DeepCopy()
			slice.Endpoints = nil
			return c.Update(ctx, slice)
		}, ""}, kube("endpointslice-controller")},
		{attempt{"the mirroring controller writes an EndpointSlice", makes(anEndpointSlice(s.Namespace, s.service.Name)), ""},
			kube("endpointslicemirroring-controller")},
		{attempt{"the endpoint controller changes Endpoints", func(ctx context.Context, c client.Client) error {
			endpoints := s.oldEndpoints.DeepCopy()
			endpoints.Subsets = nil
			return c.Update(ctx, endpoints)
		}, ""}, kube("endpoint-controller")},
		{attempt{"the garbage collector lets go of an EndpointSlice",
			patches(s.slice, "", `{"metadata":{"ownerReferences":null,"labels":{"x":"y"}}}`), ""}, kube("generic-garbage-collector")},
		{attempt{"a controller of load balancers reports on a Service", patches(s.service, "status", `{"status":{"conditions":[`+
			`{"type":"T","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), ""},
			kube("service-controller")},
		{attempt{"another controller writes an EndpointSlice", makes(anEndpointSlice(s.Namespace, s.service.Name)),
			"only Kubernetes' controllers may write its endpoints"}, as(t, "system:serviceaccount:mesh:controller", "system:masters")},
		{attempt{"the namespace controller deletes a Service", removes(s.service), ""}, kube("namespace-controller")},
		{attempt{"the garbage collector deletes a Service", removes(s.service), ""}, kube("generic-garbage-collector")},
		{attempt{"the node controller reports on a Pod",
			patches(s.pod, "status", `{"status":{"reason":"NodeLost"}}`), ""}, kube("node-controller")},
		{attempt{"the scheduler binds a Pod", binds(s.theirs, nil), ""}, as(t, "system:kube-scheduler")},
		{attempt{"a kubelet reports on a Pod", patches(s.pod, "status", `{"status":{"message":"x"}}`), ""}, node},
		{attempt{"a kubelet takes a Pod out of traffic",
			patches(s.pod, "status", label, shipper.TrafficStatusLabel, "null"), "only Shipper may change its labels"}, node},
		{attempt{"an autoscaler scales a Deployment", scales(s.deployment, 7), "only Shipper may change its replicas"},
			kube("horizontal-pod-autoscaler")},
		{attempt{"a Pod's own account makes it the leader",
			patches(s.leader, "", label, "role", `"leader"`), ""}, account(t, s.Namespace, "leader")},
		{attempt{"a Pod's own account takes a label off", patches(s.leader, "", label, "role", "null"), ""},
			account(t, s.Namespace, "leader")},
		{attempt{"a Pod's own account gives it traffic",
			patches(s.leader, "", label, shipper.TrafficStatusLabel, `"enabled"`), "only Shipper may change its labels"},
			account(t, s.Namespace, "leader")},
		{attempt{"a Pod's own account relabels another Pod", patches(s.pod, "", label, "version", `"x"`),
			"only Shipper may change its labels"}, account(t, s.Namespace, "leader")},
		{attempt{"another account relabels the Pod", patches(s.leader, "", label, "role", `"leader"`),
			"only Shipper may change its labels"}, account(t, s.Namespace, "ci")},
	} {
		t.Run(a.name, func(t *testing.T) {
			err := a.do(s.Ctx, client.NewDryRunClient(a.who))
			switch {
			case a.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case a.refused != "" && (!guarded(err) || !strings.Contains(err.Error(), a.refused)):
				t.Errorf("the answer is %v\nand should be a refusal of the guard's that says\n%s", err, a.refused)
			}
		})
	}
}

// TestRefusalsTeach compares whole answers: whose it is, what to do instead, and who may all the same.
func TestRefusalsTeach(t *testing.T) {
	s := newShop(t)
	const refusal = "%s is forbidden: ValidatingAdmissionPolicy '%[2]s.guard.shipper.booking.com' with binding " +
		"'%[2]s.guard.shipper.booking.com' denied request: %[3]s Instead, in the management cluster: to move Pods and traffic, " +
		"kubectl -n %[4]s patch rel NEWEST --type=merge -p '{\"spec\":{\"targetStep\":STEP}}'; to change the chart or its values, " +
		"kubectl -n %[4]s edit app web. In an emergency, members of the group shipper:break-glass may."
	whose := fmt.Sprintf("is Shipper's (Application web, Release %s): only Shipper may change its ", s.release)
	d, svc, pod := s.deployment.Name, s.service.Name, s.pod.Name
	forges := " would pass for Shipper's: only Shipper gives the labels shipper-app and shipper-traffic-status, for they decide " +
		"about traffic. Leave them out."
	for name, tc := range map[string]struct {
		do                   func(context.Context, client.Client) error
		object, policy, says string
	}{
		"scaling": {scales(s.deployment, 7), fmt.Sprintf("deployments.apps %q", d), "scale",
			"Deployment " + d + " " + whose + "replicas."},
		"patching replicas": {patches(s.deployment, "", `{"spec":{"replicas":7}}`), fmt.Sprintf("deployments.apps %q", d),
			"deployments", "Deployment " + d + " " + whose + "replicas."},
		"changing a selector": {patches(s.service, "", `{"spec":{"selector":null}}`), fmt.Sprintf("services %q", svc), "services",
			"Service " + svc + " " + whose + "selector."},
		"redirecting": {patches(s.service, "", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`),
			fmt.Sprintf("services %q", svc), "services", "Service " + svc + " " + whose + "type, externalName."},
		"writing endpoints": {makes(anEndpointSlice(s.Namespace, svc)), `endpointslices.discovery.k8s.io "theirs"`, "endpoints",
			"EndpointSlice theirs would decide where Service " + svc + " sends requests, which is Shipper's (Application web): only " +
				"Kubernetes' controllers may write its endpoints."},
		"changing labels": {patches(s.pod, "", `{"metadata":{"labels":null}}`), fmt.Sprintf("pods %q", pod), "pods",
			"Pod " + pod + " " + whose + "labels (you may add others)."},
		"making a Pod": {makes(s.another(aPod(s.Namespace, forged))), `pods "another"`, "pods", "Pod another" + forges},
		"making what makes Pods": {makes(aDeployment(s.Namespace, nil, forged)), `deployments.apps "theirs"`, "templates",
			"Pods of Deployment theirs" + forges},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(s.Ctx, client.NewDryRunClient(as(t, "jdoe", "system:masters")))
			want := fmt.Sprintf(refusal, tc.object, tc.policy, tc.says, s.Namespace)
			if err == nil || err.Error() != want {
				t.Errorf("the answer is\n%v\nand should be\n%s", err, want)
			}
		})
	}
}
