// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// CompareCreation orders objects of one kind that nothing has written since their creation, as the API server created them: a timestamp has
// whole seconds, and a resourceVersion counts writes. Names decide where an object has no resourceVersion.
func CompareCreation(a, b metav1.Object) int {
	at := a.GetCreationTimestamp()
	version, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	if err != nil {
		version = 0
	}
	return cmp.Or(at.Compare(b.GetCreationTimestamp().Time), version, cmp.Compare(a.GetName(), b.GetName()))
}
