#!/usr/bin/env bash
# Assemble the image that the Dockerfile describes as an OCI archive, bin/shipper-image.tar, without a container engine.
# docker load, podman load, kind load image-archive and skopeo copy oci-archive:… read it.
#   IMAGE=registry.example.com/shipper:v0.1.0 PLATFORMS=linux/amd64 hack/image.sh
# The certificate authorities are those of this machine; CA_CERTIFICATES names another file, where it has none in
# /etc/ssl/certs/ca-certificates.crt. All times are that of the commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
version=$(hack/version.sh)
cd hack/image
go run . -root "$root" -out "$root/bin/shipper-image.tar" \
	-name "${IMAGE:-registry.example.com/shipper:$version}" -platforms "${PLATFORMS:-linux/amd64,linux/arm64}" \
	-ca-certificates "${CA_CERTIFICATES:-}" -version "$version" -revision "$(git -C "$root" rev-parse HEAD)" \
	-time "${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}"
