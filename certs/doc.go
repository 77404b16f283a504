// SPDX-License-Identifier: Apache-2.0

// Package certs provides the webhook's serving certificate, and the CA bundle that the API server trusts.
//
// The certificate is in one Secret, shipper-webhook-cert, in Shipper's namespace. Every replica watches the Secret through the
// API and uses a new certificate from the next connection on, without a volume or a restart. The modes:
//
//   - self (the default): the replicas write the Secret; see below.
//   - cert-manager: cert-manager writes it, and its cainjector writes the CA. See manifests/certs/cert-manager. While
//     there is no certificate, the webhook logs why, by the status of the Certificate.
//   - files: another system writes tls.crt and tls.key into a folder, and the CA into the webhook configurations. Shipper
//     reads the files again when they change.
//
// A replica is ready once it has a certificate and, in mode self, once the webhook configurations trust it.
//
// # Rotation
//
// In mode self no request ever fails because of a rotation: an authority is first trusted, then used, and trusted until
// everything that it has signed has ended. The writes are, in this order:
//
//	prepare   the Secret gets the next authority, which signs nothing yet
//	publish   the webhook configurations trust it beside the current one
//	          … a minute, until all API servers have seen it
//	promote   it becomes the current one and signs; the key of the one before is gone, its certificate stays
//	forget    when the last certificate of the one before has ended, it leaves the Secret
//	withdraw  and the webhook configurations
//
// renew is separate: the current authority signs another certificate, and the trust stays as it is. On a new installation the
// order is the same, without the wait, because nothing is served yet that could be refused.
//
// plan.go decides on the next write from the stored state and the time alone, so a new process continues where another one
// stopped. Every replica runs it. Each write fails if the object was written since it was read, so one replica succeeds and the
// others read again.
package certs
