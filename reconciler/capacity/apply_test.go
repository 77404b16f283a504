// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsLate(t *testing.T) {
	const session = 7
	tests := map[string]struct {
		written *scaling // nil: nothing was
		shown   int64    // the generation in the cache
		want    bool
	}{
		"nothing was written":                            {nil, 1, false},
		"the cache does not show what was written":       {&scaling{session, 3}, 2, true},
		"the cache shows what was written":               {&scaling{session, 3}, 3, false},
		"the cache shows what somebody wrote after it":   {&scaling{session, 3}, 4, false},
		"the cluster was put back before it was shown":   {&scaling{session - 1, 3}, 2, false},
		"a new cache shows what was written in one lost": {&scaling{session - 1, 3}, 3, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			deployments := []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: tc.shown}}}
			r := &Reconciler{}
			if tc.written != nil {
				r.written.Store(deployments[0].UID, *tc.written)
			}
			for range 2 { // looking changes nothing
				if got := r.isLate(session, deployments); got != tc.want {
					t.Errorf("isLate = %t, want %t", got, tc.want)
				}
			}
			if _, noted := r.written.Load(deployments[0].UID); noted != tc.want {
				t.Errorf("the scaling is noted: %t", noted)
			}
		})
	}
}
