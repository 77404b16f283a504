// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// attempt is an edit of an object of Shipper, or of another one. It has no effect: every
// request is a dry run, which the guard judges like any.
type attempt struct {
	name string
	do   func(context.Context, client.Client) error
	// refused is a part of the guard's answer to all who are neither Shipper, Kubernetes nor breaking the glass; empty when it
	// has no objection.
	refused string
}

// patches is an attempt to change an object by a merge patch, or its status when sub says so.
func patches(o client.Object, sub, patch string, args ...any) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o, raw := o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, args...))
		if sub != "" {
			return c.SubResource(sub).Patch(ctx, o, raw)
		}
		return c.Patch(ctx, o, raw)
	}
}

// scales is an attempt to do as `kubectl scale` and autoscalers do.
func scales(o client.Object, replicas int32) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		scale.Namespace, scale.Name = o.GetNamespace(), o.GetName()
		return c.SubResource("scale").Update(ctx, o.DeepCopyObject().(client.Object), client.WithSubResourceBody(scale))
	}
}

// makes is an attempt to create an object.
func makes(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, o.DeepCopyObject().(client.Object))
	}
}

// removes is an attempt to delete an object.
func removes(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

// binds is an attempt to put a Pod on a node, with labels for it.
func binds(pod *corev1.Pod, labels map[string]string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: cluster + "-1"}}
		binding.Namespace, binding.Name, binding.Labels = pod.Namespace, pod.Name, labels
		return c.SubResource("binding").Create(ctx, pod.DeepCopy(), binding)
	}
}

// evicts is an attempt to do what `kubectl drain` does.
func evicts(pod *corev1.Pod) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{})
	}
}

// shop is what the attempts are made on: what Shipper has rolled out, and things of others beside it.
type shop struct {
	*fixture
	release    string
	deployment *appsv1.Deployment
	replicaSet *appsv1.ReplicaSet
	service    *corev1.Service
	second     *corev1.Service // of Shipper's, without production traffic
	pod        *corev1.Pod
	others     []client.Object // a Deployment and a Service
	theirs     *corev1.Pod     // not scheduled to a node yet
	leader     *corev1.Pod     // of Shipper's, with an account of its own
	// The endpoints that Kubernetes' controllers write for the Service, in both kinds, and an EndpointSlice of another Service.
	slice        *discoveryv1.EndpointSlice
	oldEndpoints *corev1.Endpoints //nolint:staticcheck // clients of the original read Endpoints
	ownSlice     *discoveryv1.EndpointSlice
}

// newShop rolls an Application out, and blocks rollouts from then on.
func newShop(t *testing.T) *shop {
	s := &shop{fixture: begin(t, "attempts-")}
	s.release = s.rolledOut()
	s.Must("blocking rollouts", world.Management.Create(s.Ctx, &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "frozen"},
		Spec:       shipper.RolloutBlockSpec{Message: "the guard holds under a block"},
	}))
	s.deployment, s.service = s.fixture.deployment(s.release), s.fixture.service()
	sets := &appsv1.ReplicaSetList{}
	s.Must("listing replica sets", world.cluster.List(s.Ctx, sets, client.InNamespace(s.Namespace)))
	if len(sets.Items) != 1 {
		t.Fatalf("there are %d replica sets", len(sets.Items))
	}
	s.replicaSet, s.pod = &sets.Items[0], &s.pods(s.release)[0]
	s.Must("letting a pod have traffic by its label", patches(s.pod, "", `{"metadata":{"labels":{%q:%q}}}`,
		shipper.TrafficStatusLabel, shipper.TrafficEnabled)(s.Ctx, shippersAccount(t)))

	s.second = aService(s.Namespace, map[string]string{shipper.AppLabel: appName})
	s.second.Name = "second"
	s.Must("creating a second service", shippersAccount(t).Create(s.Ctx, s.second))
	s.findEndpoints()
	s.others = []client.Object{aDeployment(s.Namespace, nil, nil), aService(s.Namespace, nil)}
	for i := range s.others {
		s.others[i].SetName("beside")
		s.Must("creating things of others", world.cluster.Create(s.Ctx, s.others[i]))
	}
	s.theirs = aPod(s.Namespace, theirs)
	s.theirs.Spec.SchedulerName = "nobody"
	s.Must("creating a pod of others", world.cluster.Create(s.Ctx, s.theirs))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "leader"}}
	s.Must("creating an account", world.cluster.Create(s.Ctx, account))
	s.leader = aPod(s.Namespace, map[string]string{shipper.AppLabel: appName, "app": "web", "role": "follower"})
	s.leader.Name, s.leader.Spec.ServiceAccountName = "leader", account.Name
	s.Must("creating a pod with an account", shippersAccount(t).Create(s.Ctx, s.leader))
	for _, name := range []string{"ci", "default", "leader"} {
		s.Must("granting rights", world.cluster.Create(s.Ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: s.Namespace}},
		}))
	}
	return s
}

// account is a service account's client.
func account(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	return as(t, "system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// shippersAccount is Shipper in the application cluster.
func shippersAccount(t *testing.T) client.Client {
	t.Helper()
	return account(t, shipper.SystemNamespace, shipper.ApplicationServiceAccount)
}

// attempts is the table.
func (s *shop) attempts() []attempt {
	d, rs, svc, pod := s.deployment, s.replicaSet, s.service, s.pod
	const label, template = `{"metadata":{"labels":{%q:%s}}}`, `{"spec":{"template":{"metadata":{"labels":{%q:%s}}}}}`
	const relabels, podsRelabels = "only Shipper may change its labels (you may add others)",
		"only Shipper may change its Pods' labels (you may add others)"
	const owners, takes = `{"metadata":{"ownerReferences":%s}}`, "only Shipper may change its controller"
	mine := fmt.Sprintf(`[{"apiVersion":"v1","kind":"Service","name":%q,"uid":%q,"controller":true}]`, svc.Name, svc.UID)
	const rescales, reselects, forges = "only Shipper may change its replicas", "only Shipper may change its selector",
		"would pass for Shipper's: only Shipper gives the labels shipper-app and shipper-traffic-status"
	out := []attempt{
		{"scale a Deployment", scales(d, 7), rescales},
		{"scale a Deployment to none", scales(d, 0), rescales},
		{"scale a Deployment to what it has", scales(d, *d.Spec.Replicas), ""},
		{"patch the replicas of a Deployment", patches(d, "", `{"spec":{"replicas":7}}`), rescales},
		{"take the replicas out of a Deployment", patches(d, "", `{"spec":{"replicas":null}}`), rescales},
		{"take a label of Shipper's off a Deployment", patches(d, "", label, shipper.AppLabel, "null"), relabels},
		{"change a label of Shipper's on a Deployment", patches(d, "", label, shipper.ReleaseLabel, `"x"`), relabels},
		{"give a label of Shipper's to a Deployment", patches(d, "", label, shipper.LBLabel, `"production"`), relabels},
		{"change a label of the chart on a Deployment", patches(d, "", label, "app", `"x"`), relabels},
		{"take all labels off a Deployment", patches(d, "", `{"metadata":{"labels":null}}`), relabels},
		{"give a label of one's own to a Deployment", patches(d, "", label, "team", `"x"`), ""},
		{"annotate a Deployment", patches(d, "", `{"metadata":{"annotations":{"note":"x"}}}`), ""},
		{"change the image of a Deployment", patches(d, "", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`), ""},
		{"restart a Deployment", patches(d, "", `{"spec":{"template":{"metadata":{"annotations":{"restartedAt":"x"}}}}}`), ""},
		{"pause a Deployment", patches(d, "", `{"spec":{"paused":true}}`), ""},
		{"report on a Deployment", patches(d, "status", `{"status":{"collisionCount":1}}`), ""},
		{"let a Deployment's Pods have traffic", patches(d, "", template, shipper.TrafficStatusLabel, `"enabled"`), podsRelabels},
		{"change a label of the chart on a Deployment's Pods", patches(d, "", template, "version", `"x"`), podsRelabels},
		{"give a label of one's own to a Deployment's Pods", patches(d, "", template, "team", `"x"`), ""},
		{"delete a Deployment", removes(d), ""},

		{"scale a ReplicaSet", scales(rs, 7), rescales},
		{"patch the replicas of a ReplicaSet", patches(rs, "", `{"spec":{"replicas":7}}`), rescales},
		{"let a ReplicaSet's Pods have traffic", patches(rs, "", template, shipper.TrafficStatusLabel, `"enabled"`), podsRelabels},
		{"take a ReplicaSet from its Deployment", patches(rs, "", owners, mine), takes},
		{"take a ReplicaSet from its Deployment and leave it without an owner", patches(rs, "", owners, "null"), takes},
		{"take a ReplicaSet from its Deployment by its status", patches(rs, "status", owners, mine), takes},
		{"change a label of a ReplicaSet by its status", patches(rs, "status", label, shipper.ReleaseLabel, `"x"`), relabels},

		{"change the selector of a Service", patches(svc, "", `{"spec":{"selector":{"shipper-release":null}}}`), reselects},
		{"point a Service at others", patches(svc, "", `{"spec":{"selector":{"name":"x"}}}`), reselects},
		{"take a label of Shipper's off a Service", patches(svc, "", label, shipper.LBLabel, "null"), relabels},
		{"change a label of a Service by its status", patches(svc, "status", label, shipper.AppLabel, "null"), relabels},
		{"annotate a Service", patches(svc, "", `{"metadata":{"annotations":{"note":"x"}}}`), ""},
		{"report on a Service", patches(svc, "status", `{"status":{"conditions":[`+
			`{"type":"T","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), ""},
		{"delete the production Service", removes(svc), "only Shipper may delete it, because it takes the production traffic"},
		{"delete the anchor", removes(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: shipper.AnchorName(s.release),
		}}), "only Shipper may delete it, because it owns what the Release has in this cluster"},

		{"take a Pod out of traffic", patches(pod, "", label, shipper.TrafficStatusLabel, `"disabled"`), relabels},
		{"take the traffic label off a Pod", patches(pod, "", label, shipper.TrafficStatusLabel, "null"), relabels},
		{"take a Pod out of its ReplicaSet", patches(pod, "", label, "app", "null"), relabels},
		{"take a Pod from its ReplicaSet", patches(pod, "", owners, mine), takes},
		{"take a Pod from its ReplicaSet by its status", patches(pod, "status", owners, mine), ""}, // Kubernetes leaves them
		{"take a Pod from its ReplicaSet and leave it without an owner", patches(pod, "", owners, "null"), takes},
		{"move a Pod to another release", patches(pod, "", label, shipper.ReleaseLabel, `"x"`), relabels},
		{"take a Pod out of traffic by its status", patches(pod, "status", label, shipper.TrafficStatusLabel, "null"), relabels},
		{"give a label of one's own to a Pod", patches(pod, "", label, "team", `"x"`), ""},
		{"annotate a Pod", patches(pod, "", `{"metadata":{"annotations":{"note":"x"}}}`), ""},
		{"report on a Pod", patches(pod, "status", `{"status":{"message":"x"}}`), ""},
		{"evict a Pod", evicts(pod), ""},
		{"delete a Pod", removes(pod), ""},

		{"give traffic to a Pod of one's own", patches(s.theirs, "", label, shipper.TrafficStatusLabel, `"enabled"`), forges},
		{"give a Pod of one's own to Shipper", patches(s.theirs, "", label, shipper.AppLabel, `"web"`), forges},
		{"give a Pod of one's own to Shipper by its status", patches(s.theirs, "status", label, shipper.AppLabel, `"web"`), forges},
		{"give a Pod to Shipper when it is bound", binds(s.theirs, forged), forges},
		{"bind a Pod", binds(s.theirs, nil), ""},
		{"relabel a Pod of one's own", patches(s.theirs, "", label, "app", `"x"`), ""},

		{"make a Pod in traffic", makes(s.another(aPod(s.Namespace, forged))), forges},
		{"make a Pod with the traffic label alone", makes(s.another(aPod(s.Namespace, inTraffic))), forges},
		{"make a Pod", makes(s.another(aPod(s.Namespace, theirs))), ""},
		{"make a Service that passes for Shipper's", makes(aService(s.Namespace, forged)), forges},
		{"make a Service for Shipper's Pods", makes(aService(s.Namespace, theirs)), ""},
		{"make a Deployment that passes for Shipper's", makes(aDeployment(s.Namespace, forged, nil)), forges},
		{"make a ConfigMap with Shipper's label", makes(&corev1.ConfigMap{ObjectMeta: named(s.Namespace, forged)}), ""},
	}
	out = append(append(out, s.redirections()...), s.endpoints()...)
	for _, o := range s.others {
		out = append(out, attempt{fmt.Sprintf("give a %T to Shipper", o), patches(o, "", label, shipper.AppLabel, `"web"`), forges},
			attempt{fmt.Sprintf("relabel a %T of one's own", o), patches(o, "", label, "app", `"x"`), ""})
	}
	for _, o := range workloads(s.Namespace, forged) {
		out = append(out, attempt{fmt.Sprintf("make a %T whose Pods pass for Shipper's", o), makes(o), forges})
	}
	for _, o := range workloads(s.Namespace, theirs) {
		out = append(out, attempt{fmt.Sprintf("make a %T", o), makes(o), ""})
	}
	return out
}

// another has a name that no object has yet.
func (s *shop) another(pod *corev1.Pod) *corev1.Pod {
	pod.Name = "another"
	return pod
}

func TestAttempts(t *testing.T) {
	s := newShop(t)
	others := map[string]client.Client{
		"an administrator":             as(t, "jdoe", "system:masters"),
		"an account of the namespace":  account(t, s.Namespace, "ci"),
		"the account Pods have anyway": account(t, s.Namespace, "default"),
		"an account in Shipper's room": as(t, "system:serviceaccount:"+shipper.SystemNamespace+":default", "system:masters"),
	}
	for who, c := range others {
		for _, a := range s.attempts() {
			t.Run(who+" tries to "+a.name, func(t *testing.T) {
				err := a.do(s.Ctx, client.NewDryRunClient(c))
				switch {
				case a.refused == "" && err != nil:
					t.Errorf("refused: %v", err)
				case a.refused != "" && (!guarded(err) || !strings.Contains(err.Error(), a.refused)):
					t.Errorf("the answer is %v\nand should be a refusal of the guard's that says\n%s", err, a.refused)
				}
			})
		}
	}
	for who, c := range map[string]client.Client{
		"who breaks the glass": as(t, "jdoe", "system:masters", "shipper:break-glass"),
		// With all rights, so that it is the guard alone that is asked.
		"Shipper": as(t, "system:serviceaccount:shipper-system:shipper-app-cluster", "system:masters"),
	} {
		for _, a := range s.attempts() {
			t.Run(who+" tries to "+a.name, func(t *testing.T) {
				if err := a.do(s.Ctx, client.NewDryRunClient(c)); err != nil {
					t.Errorf("refused: %v", err)
				}
			})
		}
	}
}
