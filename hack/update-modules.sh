#!/usr/bin/env bash
# Make go.mod and go.sum say what the code imports. hack/verify-modules.sh is its twin.
set -euo pipefail
cd "$(dirname "$0")/.."
GOFLAGS='' go mod tidy
