// SPDX-License-Identifier: Apache-2.0

package rights

import authenticationv1 "k8s.io/api/authentication/v1"

// ServiceAccount is a ServiceAccount as the API server knows it.
func ServiceAccount(namespace, name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}
