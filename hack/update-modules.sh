#!/usr/bin/env bash
# Make every go.mod and go.sum say what the code imports. hack/verify-modules.sh is its twin.
set -euo pipefail
cd "$(dirname "$0")/.."
for module in $(hack/modules.sh); do
	(cd "$module" && GOFLAGS='' go mod tidy)
done
