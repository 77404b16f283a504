#!/usr/bin/env bash
# Format all Go files and group their imports. hack/verify-format.sh is its twin.
set -euo pipefail
cd "$(dirname "$0")/.."
"$(hack/tool.sh golangci-lint)" fmt ./...
