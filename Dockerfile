# SPDX-License-Identifier: Apache-2.0
#
# One image with both binaries; manifests/deploy/shipper.yaml chooses by command, and mounts what is written to: the root is read-only.
# For several platforms:
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.com/shipper:v0.1.0 .
# `make image` assembles the same image, by reading this file, where there is no container engine.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH hack/binaries.sh /out shipper-webhook shipper-reconciler

# Nothing but the binaries, which are static, and the certificate authorities for chart repositories. No shell.
FROM scratch
ARG VERSION REVISION
LABEL org.opencontainers.image.title="Shipper" \
      org.opencontainers.image.description="Rolls applications out to fleets of Kubernetes clusters, step by step" \
      org.opencontainers.image.url="https://shipper.dev/shipper" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/shipper-webhook /out/shipper-reconciler /
USER 65532:65532
