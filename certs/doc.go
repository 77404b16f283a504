// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook the certificate it serves with, and the API server the CA it trusts.
//
// The life of a certificate. It lives in one Secret, shipper-webhook-cert, in Shipper's namespace. Whoever fills the
// Secret, every replica watches it through the API and serves the new certificate from the next connection on: no
// kubelet, no volume and no restart are needed.
//
//   - self (the default): the replicas fill it themselves. At minute zero the Secret is empty; the first replica to
//     write wins, the others take what it wrote. The CA lives ten years, the certificate one, both are renewed ninety
//     days before their end, and the CA is written into both webhook configurations whenever it is not there.
//   - cert-manager: cert-manager fills it, and its cainjector writes the CA. See manifests/certs/cert-manager.
//   - files: somebody else puts tls.crt and tls.key into a folder, and sees to the CA. They are read again when they
//     change.
//
// A replica is ready once it has a certificate and, in mode self, once the API server was told to trust it.
package certs
