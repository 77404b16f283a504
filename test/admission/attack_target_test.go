// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// A target's labels decide which Release's Pods are counted and which Application's traffic they share: a user who changed
// them would change workloads despite a block.
func TestTargetsAreNotEditedByHand(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	b := block(t, ns)
	for kind, o := range map[string]client.Object{"CapacityTarget": r.capacity, "TrafficTarget": r.traffic, "InstallationTarget": r.install} {
		spec := map[string]string{
			"CapacityTarget":     `"spec":{"clusters":[{"name":"eu","percent":77}]}`,
			"TrafficTarget":      `"spec":{"clusters":[{"name":"eu","weight":77}]}`,
			"InstallationTarget": `"spec":{"clusters":["theirs"]}`,
		}[kind]
		target, blocked := m.on(o), refused{403, b.Name}
		forbidden := refused{403, "spec of " + kind + "s is written by Shipper only"}
		labelled, annotated := refused{422, "metadata.labels["}, refused{422, "metadata.annotations["}
		otherApp := `"shipper-app":"other"`
		t.Run(kind, func(t *testing.T) {
			comesToNothing(t, map[string]attack{
				"its spec, by merge patch":           {target.merge("{" + spec + "}"), forbidden},
				"its spec, applied as if by Shipper": {target.apply(shipper.FieldOwner, "{"+spec+"}"), forbidden},
				"its spec, with a report":            {target.merge(`{`+spec+`,"status":{}}`, "status"), refused{}},
				"its spec, beside a broken status":   {target.merge("{" + spec + "," + brokenStatus + "}"), forbidden},
				"its spec, as a number of replicas":  {target.merge(`{"spec":{"replicas":3}}`, "scale"), refused{404, ""}},
				"its spec, by removal": {
					target.patch(types.JSONPatchType, `[{"op":"remove","path":"/spec"}]`), refused{422, "spec: Required value"},
				},
				"its Application":              {target.merge(labels(otherApp)), labelled},
				"its Application, by removal":  {target.merge(labels(`"shipper-app":null`)), labelled},
				"its Application, by apply":    {target.apply(shipper.FieldOwner, labels(otherApp)), labelled},
				"its Application, by a report": {target.merge(labels(otherApp, `"status":{}`), "status"), refused{}},
				"its Release":                  {target.merge(labels(`"shipper-release":"other-0"`)), labelled},
				"its labels, all of them":      {target.merge(`{"metadata":{"labels":null}}`), labelled},
				"its labels, with one more":    {target.merge(labels(`"mine":"x"`)), labelled},
				"its labels, by replace": {target.replace(func(u *unstructured.Unstructured) {
					u.SetLabels(map[string]string{"shipper-app": "other"})
				}), labelled},
				"the digest of its chart": {
					target.merge(annotations(`"shipper.booking.com/release.chart.digest":"` + digest + `"`)), annotated,
				},
				"an annotation of Shipper's to come": {target.merge(annotations(`"shipper.booking.com/any":"x"`)), annotated},
				"an annotation of the user's own":    {target.merge(annotations(`"mine":"x"`)), refused{}},
				"its owner, in another version": {
					target.merge(owners(owner("shipper.booking.com/v9", "Release", r.rel.Name, r.rel.UID))),
					refused{422, "metadata.ownerReferences: Forbidden"},
				},
				"one more": {target.create(), forbidden},
				"one more, by a part of a name": {target.create(func(o client.Object) {
					o.SetName("")
					o.SetGenerateName(r.rel.Name)
				}), forbidden},
				"one more, named like a Release to come": {target.create(func(o client.Object) {
					o.SetName(strings.TrimSuffix(r.rel.Name, "0") + "1")
				}), forbidden},
				"one more, without an owner": {target.create(func(o client.Object) { o.SetOwnerReferences(nil) }), forbidden},
				"none":                       {target.remove(), blocked},
				"none of all": {func(ctx context.Context) error {
					return m.raw.Delete().AbsPath("/apis", shipper.GroupName, "v1alpha1/namespaces", ns, resourceOf(o)).Do(ctx).Error()
				}, blocked},
			}, ns)
		})
	}
}

// A user who may stamp restores targets from a backup while no reconciler runs: for their own Release, and immutable from
// then on.
func TestTargetsAreMadeByWhoMayStamp(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	dev, reconciler, restorer := as(t, "dev"), as(t, reconcilerUser), as(t, "restorer-of-targets")
	app := application(ns, startRepository(t, "0.0.1"))
	create(t, dev, app)
	rel := release(t, app)
	create(t, reconciler, rel)
	target := func() *shipper.CapacityTarget {
		return &shipper.CapacityTarget{ObjectMeta: child(rel), Spec: shipper.CapacityTargetSpec{
			Clusters: []shipper.ClusterCapacityTarget{{Name: "eu", AsFound: true}},
		}}
	}
	forbidden := refused{403, "spec of CapacityTargets is written by Shipper only"}
	checkRefused(t, restorer.Create(t.Context(), target()), forbidden)
	grant(t, "restorer-of-targets", "stamp", "capacitytargets")
	env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error {
		return restorer.Create(ctx, target(), client.DryRunAll)
	})
	foreign := target()
	foreign.OwnerReferences[0].UID = "forged"
	checkRefused(t, restorer.Create(t.Context(), foreign), refused{422, "metadata.ownerReferences: Required value"})
	ct := target()
	create(t, restorer, ct)
	ct.Spec.Clusters[0] = shipper.ClusterCapacityTarget{Name: "eu", Percent: 100}
	checkRefused(t, restorer.Update(t.Context(), ct), forbidden)
}
