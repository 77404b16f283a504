#!/usr/bin/env bash
# Write the screens of `shipperctl rollout status` into the documents, as it draws them. TestScreensOfDocuments compares them.
set -euo pipefail
cd "$(dirname "$0")/.."
go test ./cmd/shipperctl/rollout -run TestScreensOfDocuments -count=1 -update >/dev/null
