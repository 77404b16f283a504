// SPDX-License-Identifier: Apache-2.0

// Package valuessnapshot keeps what the ConfigMaps and Secrets held that a Release has values from: in a Secret of the Release's, which
// cannot be changed and goes with it. So a Release renders the same when they hold something else, or are gone, and a Release that goes
// back to another takes what that one keeps. The kept values are compared with the digests that were admitted with the Release.
package valuessnapshot
