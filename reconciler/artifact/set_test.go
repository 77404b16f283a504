// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestOwnersOfWhatIsThere(t *testing.T) {
	head := func(uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: shipper.GroupVersion.String(), Kind: chartSnapshot, Name: "head", UID: types.UID(uid)}
	}
	one, two := ownedBy("Release", release("one", "")), ownedBy("Release", release("two", ""))
	for sentence, tc := range map[string]struct {
		there   []metav1.OwnerReference
		deleted bool
		owner   metav1.OwnerReference
		instead string
		want    []metav1.OwnerReference
		err     error
	}{
		"a second owner is added":     {there: []metav1.OwnerReference{one}, owner: two, want: []metav1.OwnerReference{one, two}},
		"an owner is not added twice": {there: []metav1.OwnerReference{one}, owner: one, want: []metav1.OwnerReference{one}},
		"another owner suffices": {
			there: []metav1.OwnerReference{one}, owner: two, instead: "one", want: []metav1.OwnerReference{one},
		},
		"a part without an owner is given its head": {owner: head("new"), want: []metav1.OwnerReference{head("new")}},
		"a part of a head that is gone is awaited": {
			there: []metav1.OwnerReference{head("old")}, owner: head("new"), want: []metav1.OwnerReference{head("old")}, err: errDeleted,
		},
		"what is being deleted is awaited": {
			there: []metav1.OwnerReference{one}, deleted: true, owner: one, want: []metav1.OwnerReference{one}, err: errDeleted,
		},
	} {
		o := &shipper.ChartSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "x", UID: "x", OwnerReferences: tc.there}}
		if tc.deleted {
			o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/wait"}
		}
		c := newClient(t, o)
		again := &shipper.ChartSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "x"}}
		err := set{chartSnapshot, c}.put(t.Context(), again, tc.owner, types.UID(tc.instead))
		if !errors.Is(err, tc.err) || err == nil && again.UID != "x" {
			t.Errorf("%s: %v, of UID %q", sentence, err, again.UID)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, o.OwnerReferences); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}
