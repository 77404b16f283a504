# SPDX-License-Identifier: Apache-2.0
#
# One image with both binaries; manifests/deploy/shipper.yaml chooses by command. For several platforms:
#   docker buildx build --platform linux/amd64,linux/arm64 -t registry.example.com/shipper:v0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags '-s -w' -o /out/ \
    ./cmd/shipper-webhook ./cmd/shipper-reconciler

# Certificate authorities, for chart repositories, and no shell.
FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/shipper-webhook /out/shipper-reconciler /
USER 65532:65532
