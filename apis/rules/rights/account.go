// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// ServiceAccount is a ServiceAccount as the API server knows it.
func ServiceAccount(namespace, name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{
		Username: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// IsServiceAccountOf reports whether a user name is that of a ServiceAccount of a namespace.
func IsServiceAccountOf(username, namespace string) bool {
	return strings.HasPrefix(username, "system:serviceaccount:"+namespace+":")
}

// AccountRequester says why no approval counts of what a ServiceAccount requested, and what allows it.
func AccountRequester(what, account, allow string) string {
	return fmt.Sprintf("%s requested %s. A user with the role edit may act as this ServiceAccount, and could approve their own change: "+
		"request it as a user, or as a ServiceAccount of another namespace, or set %s: true", account, what, allow)
}

// AccountApprover says why the approval of a ServiceAccount does not count, and what allows it.
func AccountApprover(account, allow string) string {
	return fmt.Sprintf("a user with the role edit may act as %s, a ServiceAccount of this namespace, and could approve their own change: "+
		"approve as a user, or set %s: true", account, allow)
}
