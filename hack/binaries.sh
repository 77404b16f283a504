#!/usr/bin/env bash
# Build programs of cmd as they are shipped, static and the same from any folder: hack/binaries.sh OUT PROGRAM…
# GOOS and GOARCH say for what. The Dockerfile, hack/image and hack/dist all build with this.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
shift
# What a caller exports must not change what is built.
CGO_ENABLED=0 GOFLAGS='' GOWORK=off go build -trimpath -ldflags '-s -w' -o "$out/" "${@/#/./cmd/}"
