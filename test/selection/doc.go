// SPDX-License-Identifier: Apache-2.0

// Package selection tests on a real control plane how the content of template.resources is taken: by Shipper's own account, with the rights
// of manifests/rbac and what each test grants.
package selection
