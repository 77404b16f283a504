// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook the certificate it serves with, and the API server the CA it trusts.
//
// The life of a certificate. It lives in one Secret, shipper-webhook-cert, in Shipper's namespace. Whoever fills the
// Secret, every replica watches it through the API and serves the new certificate from the next connection on: no
// kubelet, no volume and no restart are needed.
//
//   - self (the default): the replicas fill it themselves; see below.
//   - cert-manager: cert-manager fills it, and its cainjector writes the CA. See manifests/certs/cert-manager. While there is no
//     certificate, the readiness probe says why by the status of the Certificate.
//   - files: somebody else puts tls.crt and tls.key into a folder, and sees to the CA. They are read again when they
//     change.
//
// A replica is ready once it has a certificate and, in mode self, once the API server was told to trust it.
//
// # Rotation
//
// In mode self no request ever fails because of a rotation: an authority is first trusted, then used, and trusted for as
// long as anything it has signed is good. The writes are, in this order:
//
//	prepare   the Secret gets the next authority, which signs nothing yet
//	publish   the webhook configurations trust it beside the current one
//	          … a minute, for API servers to hear of it
//	promote   it becomes the current one and signs; the key of the one before is gone, its certificate stays
//	forget    when the last certificate of the one before has ended, it leaves the Secret
//	withdraw  and the webhook configurations
//
// and renew, when the current authority signs another certificate, for which trust need not change. At minute zero they are
// the same, without waiting, for nothing is served that could be refused.
//
// plan.go decides which write is next, by what is stored and the time alone; so a process that ends after any write is
// followed by one that goes on. Every replica runs it. Each write is made on condition that nobody wrote since it was
// decided on, so one wins and the others look again.
package certs
