#!/usr/bin/env bash
# Fail, and show the difference, when the screens in the documents are not as hack/update-screens.sh writes them.
set -euo pipefail
cd "$(dirname "$0")/.."
go test ./cmd/shipperctl/rollout -run TestScreensOfDocuments
