#!/usr/bin/env bash
# Fail, and show the difference, when a go.mod or go.sum is not as hack/update-modules.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
for module in $(hack/modules.sh); do
	(cd "$module" && GOFLAGS='' go mod tidy -diff) || {
		echo "$module/go.mod is not tidy: run make generate" >&2
		exit 1
	}
done
