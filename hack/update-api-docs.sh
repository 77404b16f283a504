#!/usr/bin/env bash
# Write docs/api.md from the CRDs and the comments of constants. hack/verify-api-docs.sh is its twin.
set -euo pipefail
cd "$(dirname "$0")/.."
page=$(go run ./hack/apidocs)
printf '%s\n' "$page" >docs/api.md
