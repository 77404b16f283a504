// SPDX-License-Identifier: Apache-2.0

package fleet

import "testing"

func TestAnAPIServerThatIsNotReadyIsDescribedByItsFailingChecks(t *testing.T) {
	for response, want := range map[string]string{
		"[+]ping ok\n[+]etcd ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n" +
			"[-]poststarthook/start-service-ip-repair-controllers failed: reason withheld\nreadyz check failed\n": "not ready yet: " +
			"poststarthook/rbac/bootstrap-roles, poststarthook/start-service-ip-repair-controllers",
		"service unavailable": "service unavailable",
	} {
		if got := failing(response); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
