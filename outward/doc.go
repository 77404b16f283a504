// SPDX-License-Identifier: Apache-2.0

// Package outward is the policy for connections to servers that users name, such as chart repositories and the receivers of
// notifications.
//
// A user who chooses a URL must not reach through Shipper what only Shipper's machine can reach. A Policy says which URLs may be
// requested. Its transport checks each resolved address when it connects, so that a name that resolves to another address each
// time does not evade the check. Redirects are checked like the first URL, or not followed.
package outward
