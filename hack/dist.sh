#!/usr/bin/env bash
# Make what people download into dist: shipperctl for each operating system, checksums, and the manifest for krew.
#   VERSION=v0.1.0 PLATFORMS=linux/amd64 DOWNLOADS=https://example.com/shipper hack/dist.sh
# All times are that of the commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
[[ -z ${PLATFORMS:-} ]] || flags+=(-platforms "$PLATFORMS")
[[ -z ${DOWNLOADS:-} ]] || flags+=(-downloads "$DOWNLOADS")
go run ./hack/dist -version "$(hack/version.sh)" -time "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" ${flags[@]+"${flags[@]}"}
