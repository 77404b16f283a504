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

// AccountRequester says why nothing counts as an approval that was asked for by a ServiceAccount: of what, and how that is allowed.
func AccountRequester(what, account, allow string) string {
	return fmt.Sprintf("%s was asked for by %s, a ServiceAccount as which users with the role edit may act, one of whom could approve their "+
		"own change: have a user ask for it, or a ServiceAccount of another namespace, or set %s: true", what, account, allow)
}

// AccountApprover says why the approval of a ServiceAccount does not count, and how that is allowed.
func AccountApprover(account, allow string) string {
	return fmt.Sprintf("%s is a ServiceAccount of this namespace, as which users with the role edit may act, one of whom could approve "+
		"their own change: have a user approve it, or set %s: true", account, allow)
}
