#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build Shipper's programs into BIN (default bin), and say meanwhile how far that is: hack/build.sh [PACKAGE…]
# The packages are programs that `go run` is about to run: they are compiled, too, and kept in Go's build cache.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly name=shipper programs='shipper-webhook shipper-reconciler shipperctl'
source hack/cached.sh
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM

mkdir -p "${BIN:=bin}"
compile "$programs" "./cmd/${programs// / ./cmd/}" . '' build -o "$BIN/"
for package in "$@"; do compile "$package" "$package" . '' run -exec true; done
