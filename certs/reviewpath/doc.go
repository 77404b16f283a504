// SPDX-License-Identifier: Apache-2.0

// Package reviewpath keeps the path secret under which the webhook answers reviews.
//
// A review contains the name of its own user, so a client that reaches the port can claim any. The path of each webhook is
// /TOKEN/validate-application, for example, with a random token for each installation. Any other path gets 404 before the
// request is read.
//
// The token is in the Secret of the certificate, in all modes of certificates, and the webhook writes it into its two webhook
// configurations. The manifests have no paths at all, so that no tool that applies them again resets the path.
//
//   - renew: there is no token, or it is old. A new one goes into the Secret, and the one before is answered for some minutes.
//   - announce: a configuration names another path, that of an older version, for example. The Secret says until when that
//     path is answered, for all replicas, before
//   - publish: the configurations get the token.
//
// # No write is refused meanwhile
//
// A replica answers the token of the Secret, those that the Secret says are still answered, and whatever path a webhook
// configuration names at the moment. Only administrators write configurations, and API servers request what is in them: so a
// tool that resets the path again and again takes the protection away, and refuses no write. A token is put back once a minute
// at most. A path without a token is left for ten minutes: the manifests of an older version have it, whose replicas answer at
// no other and may be on their way in or out.
//
// A replica's cache may be older than the API server's. So it reads the Secret and the configurations again before it answers
// 404, once a second at most for all requests together.
package reviewpath
