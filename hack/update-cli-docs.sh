#!/usr/bin/env bash
# Write docs/cli.md from the commands of cmd/shipperctl. hack/verify-cli-docs.sh is its twin.
# OUT (default: docs/cli.md) is where the page goes.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=docs/cli.md}"
page=$(go run ./hack/clidocs)
printf '%s\n' "$page" >"$OUT"
