#!/usr/bin/env bash
# Fail, and show the difference, when go.mod or go.sum is not as hack/update-modules.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
GOFLAGS='' go mod tidy -diff || {
	echo "go.mod is not tidy: run make generate" >&2
	exit 1
}
