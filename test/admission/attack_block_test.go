// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// quoted is text as JSON has it.
func quoted(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// recorded returns the overrides that an object's annotation records.
func recorded(t *testing.T, o client.Object) []rules.Record {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return rules.Records(o.GetAnnotations())
}

// The record of an override keeps the user, reason and time of the override, whatever other users write afterwards.
func TestWhoOverrodeIsNotForged(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	b, other := block(t, ns), block(t, ns)
	key := ns + "/" + b.Name
	const noted, why = `"shipper.booking.com/rollout-block.override-stamp":`, `"shipper.booking.com/rollout-block.override-reason":`
	said := client.RawPatch(types.MergePatchType, []byte(annotations(override+quoted(t, key)+`,`+why+`"the fix"`)))
	for _, o := range []client.Object{r.app, r.rel} {
		if err := admin.Patch(t.Context(), o, said); err != nil {
			t.Fatal(err)
		}
		was := recorded(t, o)
		if len(was) != 1 || was[0].Block != key || was[0].UID != b.UID || was[0].Reason != "the fix" || was[0].Time.IsZero() {
			t.Fatalf("the record is %v", was)
		}
		forged := was[0]
		forged.User = "boss"
		boss := noted + quoted(t, rules.FormatRecords([]rules.Record{forged}))
		forged.Block, forged.UID = ns+"/"+other.Name, other.UID
		more := noted + quoted(t, rules.FormatRecords(append(was, forged)))
		both := override + quoted(t, key+","+ns+"/"+other.Name)
		v, byOther := m.on(o), refused{403, "may not override RolloutBlock " + ns + "/" + other.Name}
		t.Run(kindOf(o), func(t *testing.T) {
			comesToNothing(t, map[string]attack{
				"by another, by merge patch":             {v.merge(annotations(boss)), refused{}},
				"by another, by apply":                   {v.apply("mallory", annotations(boss)), refused{}},
				"by another, applied as if by Shipper":   {v.apply(shipper.FieldOwner, annotations(boss)), refused{}},
				"by another, by replace":                 {v.replace(annotate(shipper.RolloutBlockOverrideStampAnnotation, "[]")), refused{}},
				"by another, beside a broken status":     {v.merge(annotations(boss, brokenStatus)), refused{}},
				"by another, with a report":              {v.merge(annotations(boss, `"status":{}`), "status"), refused{}},
				"removed":                                {v.merge(annotations(noted + "null")), refused{}},
				"removed, beside a broken status":        {v.merge(annotations(noted+"null", brokenStatus)), refused{}},
				"of one block more":                      {v.merge(annotations(more)), refused{}},
				"of one block more, which is overridden": {v.merge(annotations(more + "," + both)), byOther},
				"of what is none":                        {v.merge(annotations(noted + `"x"`)), refused{}},
			}, ns)
			if err := v.merge(annotations(why + `"no reason"`))(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was, recorded(t, o)); diff != "" {
				t.Errorf("after another reason (-was +is):\n%s", diff)
			}
		})
	}
}

// The maker of a block chooses spec.author; the created-by annotation names the maker and cannot be changed.
func TestWhoMadeABlockIsNotForged(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	m := newAttacker(t, ns)
	b := ask.Block(ns + "/dns-outage")
	b.CreationTimestamp = metav1.Time{}
	create(t, as(t, "ann"), b)
	made := func(by string) string { return `"shipper.booking.com/rollout-block.created-by":` + by }
	v := m.on(b)
	comesToNothing(t, map[string]attack{
		"by another, by merge patch":           {v.merge(annotations(made(`"boss"`))), refused{}},
		"by another, applied as if by Shipper": {v.apply(shipper.FieldOwner, annotations(made(`"boss"`))), refused{}},
		"by another, by replace":               {v.replace(annotate(shipper.RolloutBlockCreatedByAnnotation, "boss")), refused{}},
		"by another, beside a broken status":   {v.merge(annotations(made(`"boss"`), brokenStatus)), refused{}},
		"by another, with a report":            {v.merge(annotations(made(`"boss"`), `"status":{}`), "status"), refused{}},
		"removed":                              {v.merge(annotations(made("null"))), refused{}},
		"removed, by replace":                  {v.replace(func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), refused{}},
	}, ns)
	if got := b.Annotations[shipper.RolloutBlockCreatedByAnnotation]; got != "ann" {
		t.Errorf("made by %q", got)
	}
	mine := sibling(b)
	mine.SetAnnotations(map[string]string{shipper.RolloutBlockCreatedByAnnotation: "boss"})
	create(t, m, mine)
	if got := mine.GetAnnotations()[shipper.RolloutBlockCreatedByAnnotation]; got != m.name {
		t.Errorf("another, said to be made by boss, is made by %q", got)
	}
}
