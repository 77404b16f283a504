// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// stored is a CapacityTarget as an API server has it.
const stored = `
apiVersion: shipper.booking.com/v1alpha1
kind: CapacityTarget
metadata:
	namespace: default
	name: web-0
	uid: old
	resourceVersion: "7"
	generation: 5
	creationTimestamp: "2026-01-01T00:00:00Z"
	managedFields: [{manager: shipper}]
	labels: {shipper-app: web}
	annotations: {a: b}
	finalizers: [x/y]
	ownerReferences:
	- {apiVersion: v1, kind: ConfigMap, name: mine, uid: gone}
	- {apiVersion: shipper.booking.com/v1alpha1, kind: Release, name: web-0, uid: old-release, controller: true}
spec:
	clusters:
	- {name: eu, percent: 50, totalReplicaCount: 4}
	- {name: us, percent: 100, totalReplicaCount: 4, asFound: true}
status:
	observedGeneration: 5
	clusters: [{name: eu, availableReplicas: 2}]
`

func TestATargetAsksForNothingUntilShipperHasLooked(t *testing.T) {
	was := parse(t, stored)
	release := of(t, "Release", "default", "web-0", "")
	got := creatable(was)
	setOwner(got, was, release)
	asFound(got)
	want := parse(t, `
apiVersion: shipper.booking.com/v1alpha1
kind: CapacityTarget
metadata:
	namespace: default
	name: web-0
	labels: {shipper-app: web}
	annotations: {a: b}
	finalizers: [x/y]
	ownerReferences:
	- {apiVersion: shipper.booking.com/v1alpha1, kind: Release, name: web-0, uid: web-0-uid, controller: true}
spec:
	clusters:
	- {name: eu, percent: 0, totalReplicaCount: 4, asFound: true}
	- {name: us, percent: 0, totalReplicaCount: 4, asFound: true}
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap mine"}, lostOwners(was, got)); diff != "" {
		t.Errorf("owners that do not come back (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, stored), was); diff != "" {
		t.Errorf("the backup itself was changed (-was +is)\n%s", diff)
	}
	traffic := parse(t, "apiVersion: x/v1\nkind: TrafficTarget\nmetadata: {name: a}\nspec: {clusters: [{name: eu, weight: 40}]}")
	asFound(traffic)
	want = parse(t, "apiVersion: x/v1\nkind: TrafficTarget\nmetadata: {name: a}\nspec: {clusters: [{name: eu, weight: 0, asFound: true}]}")
	if diff := cmp.Diff(want, traffic); diff != "" {
		t.Errorf("traffic (-want +got)\n%s", diff)
	}
}

// TestChecksAreRestoredBeforeTheApplicationsThatNameThem by one client that refuses what the webhook would refuse.
func TestChecksAreRestoredBeforeTheApplicationsThatNameThem(t *testing.T) {
	var created []string
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			created = append(created, o.GetObjectKind().GroupVersionKind().Kind)
			return c.Create(ctx, o, options...)
		},
	})
	r := &restorer{
		client: c, out: io.Discard, progress: io.Discard, clock: clocktesting.NewFakePassiveClock(time.Now()), namespaces: map[string]bool{},
	}
	b := Backup{{Application: of(t, "Application", "default", "web", "")}, {Check: of(t, "Check", "shipper-checks", "errors", "")}}
	if err := r.restore(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Namespace", "Check", "Namespace", "Application"}, created); diff != "" {
		t.Errorf("created (-want +got)\n%s", diff)
	}
}

func TestStatusOf(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, status string
		generation   int
		want         map[string]any
	}{
		"a Release of which all is known": {
			"Release", "{observedGeneration: 5, conditions: []}", 5, map[string]any{"observedGeneration": int64(1), "conditions": []any{}},
		},
		"a Release that was just changed": {
			"Release", "{observedGeneration: 4, conditions: []}", 5, map[string]any{"conditions": []any{}},
		},
		"an Application": {"Application", "{observedGeneration: 9}", 9, map[string]any{"observedGeneration": int64(1)}},
		"a target: what it said decides nothing before it is looked at": {
			"CapacityTarget", "{observedGeneration: 5, clusters: []}", 5, map[string]any{"clusters": []any{}},
		},
		"what the original wrote": {"Release", "{conditions: []}", 5, map[string]any{"conditions": []any{}}},
		"nothing":                 {"Release", "{}", 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			was := parse(t, "apiVersion: x/v1\nkind: %s\nmetadata: {name: a, generation: %d}\nstatus: %s", tc.kind, tc.generation, tc.status)
			if diff := cmp.Diff(tc.want, statusOf(was)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOverridesOf(t *testing.T) {
	const record = `[{"block":"default/demo","uid":"u1","user":"ann","time":"2026-01-01T00:00:00Z","reason":"fire"},` +
		`{"block":"default/gone","uid":"u2","user":"ann","time":"2026-01-01T00:00:00Z"}]`
	demo := types.NamespacedName{Namespace: "default", Name: "demo"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		blocks      map[types.NamespacedName]types.UID
		want        map[string]string
	}{
		"of a block that is there, by the UID it has now": {
			annotations: map[string]string{
				shipper.RolloutBlockOverrideAnnotation: "default/demo,default/gone", shipper.RolloutBlockOverrideReasonAnnotation: "fire",
				shipper.RolloutBlockOverrideStampAnnotation: record, "mine": "x",
			},
			blocks: map[types.NamespacedName]types.UID{demo: "new"},
			want: map[string]string{
				shipper.RolloutBlockOverrideAnnotation: "default/demo", shipper.RolloutBlockOverrideReasonAnnotation: "fire",
				shipper.RolloutBlockOverrideStampAnnotation: `[{"block":"default/demo","uid":"new","user":"ann",` +
					`"time":"2026-01-01T00:00:00Z","reason":"fire"}]`,
			},
		},
		"of blocks that are not there": {
			annotations: map[string]string{shipper.RolloutBlockOverrideAnnotation: "default/demo"},
		},
		"of nothing": {annotations: map[string]string{"mine": "x"}, blocks: map[types.NamespacedName]types.UID{demo: "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			was := of(t, "Release", "default", "web-0", "")
			was.SetAnnotations(maps.Clone(tc.annotations))
			if diff := cmp.Diff(tc.want, overridesOf(was, tc.blocks)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			withoutOverrides(was)
			for _, k := range overrideKeys {
				if v, there := was.GetAnnotations()[k]; there {
					t.Errorf("it is made with %s=%s, before the block", k, v)
				}
			}
		})
	}
}

func TestABlockLiftsItselfWhenItWouldHave(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"some time after its creation":    {"{message: a, ttl: 90m}", "2026-01-01T01:30:00Z"},
		"at an earlier time":              {`{message: a, ttl: 90m, expiresAt: "2026-01-01T01:00:00Z"}`, "2026-01-01T01:00:00Z"},
		"at a later time, which is moved": {`{message: a, ttl: 90m, expiresAt: "2026-01-01T02:00:00Z"}`, "2026-01-01T01:30:00Z"},
		"never":                           {"{message: a}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			was := parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: RolloutBlock\n"+
				"metadata: {namespace: a, name: b, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: %s", tc.spec)
			o := creatable(was)
			if err := ttlToExpiry(o, was); err != nil {
				t.Fatal(err)
			}
			spec, _ := o.Object["spec"].(map[string]any)
			if got, _ := spec["expiresAt"].(string); got != tc.want {
				t.Errorf("it lifts itself at %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSameness(t *testing.T) {
	app := func(template, highest string) *object {
		return parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Application\nmetadata: {namespace: a, name: b, annotations: "+
			"{shipper.booking.com/app.highestObservedGeneration: %q}}\nspec: {template: %s}", highest, template)
	}
	rel := func(environment string, step int) *object {
		return parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Release\nmetadata: {namespace: a, name: b}\n"+
			"spec: {environment: %s, targetStep: %d}", environment, step)
	}
	const one, other = "{chart: {name: nginx, version: 0.0.1}}", "{chart: {name: nginx, version: 0.0.2}}"
	for name, tc := range map[string]struct {
		live, was *object
		same      sameness
		want      bool
	}{
		"an Application as it was":                 {app(one, "1"), app(one, "1"), sameApplication, true},
		"an Application that was edited":           {app(other, "1"), app(one, "1"), sameApplication, false},
		"an Application that was rolled out since": {app(one, "2"), app(one, "1"), sameApplication, false},
		"a Release as it was":                      {rel(one, 1), rel(one, 1), sameRelease, true},
		"a Release that was moved":                 {rel(one, 2), rel(one, 1), sameRelease, false},
		"another Release of that name":             {rel(other, 1), rel(one, 1), sameRelease, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := tc.same(tc.live, tc.was); got != tc.want || err != nil {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}

func TestShipperMustBeDown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	deployment := func(wanted *int32, there int32) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper"}}
		d.Spec.Replicas, d.Status.Replicas = wanted, there
		return d
	}
	lease := func(holder string, ago time.Duration) *coordinationv1.Lease {
		seconds, renewed := int32(15), metav1.MicroTime{Time: now.Add(-ago)}
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-reconciler"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds},
		}
	}
	at := func(o client.Object) error {
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(o).Build()
		return down(t.Context(), c, "shipper-system", now)
	}
	none, two := int32(0), int32(2)
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no replicas": {err: at(deployment(&none, 0))},
		"replicas": {at(deployment(&two, 2)), "shipper must be down while a backup is restored, and Deployment " +
			"shipper-system/shipper is to have Pods: kubectl scale deployment shipper -n shipper-system --replicas=0"},
		"as many replicas as by default": {at(deployment(nil, 0)), "shipper must be down while a backup is restored, and Deployment " +
			"shipper-system/shipper is to have Pods: kubectl scale deployment shipper -n shipper-system --replicas=0"},
		"Pods that are going": {at(deployment(&none, 1)), "shipper must be down while a backup is restored, and Deployment " +
			"shipper-system/shipper still has 1 Pods: wait until they are gone"},
		"a leader that has given up": {err: at(lease("", 0))},
		"a leader that vanished":     {err: at(lease("pod-1", 15*time.Second))},
		"a leader": {at(lease("pod-1", 14*time.Second)), "shipper must be down while a backup is restored, and the " +
			"reconciler pod-1 runs, says the Lease shipper-system/shipper-reconciler: stop it, or wait until 2026-01-01T00:00:01Z if it is " +
			"gone already"},
		"a Lease without a holder": {err: at(&coordinationv1.Lease{ObjectMeta: lease("", 0).ObjectMeta})},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if tc.err != nil {
				got = tc.err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
