// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObjectsOfOneSecondAreOrderedAsTheAPIServerCreatedThem(t *testing.T) {
	object := func(name, version string, second int64) metav1.Object {
		return &metav1.ObjectMeta{Name: name, ResourceVersion: version, CreationTimestamp: metav1.Unix(second, 0)}
	}
	all := []metav1.Object{object("a", "100", 1), object("b", "99", 1), object("c", "9", 1), object("d", "5", 2), object("e", "200", 0)}
	var got []string
	for _, o := range slices.SortedFunc(slices.Values(all), CompareCreation) {
		got = append(got, o.GetName())
	}
	if diff := cmp.Diff([]string{"e", "c", "b", "a", "d"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if CompareCreation(object("a", "", 1), object("b", "7", 1)) >= 0 {
		t.Error("without a resourceVersion, names do not decide")
	}
}
