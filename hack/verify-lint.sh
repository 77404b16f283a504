#!/usr/bin/env bash
# Lint: the compass of rooms (depguard), names, errors, lengths. .golangci.yml has the rules and their reasons.
# What it finds is mended by hand; hack/update-format.sh mends what a machine can.
set -euo pipefail
cd "$(dirname "$0")/.."
linter=$(hack/tool.sh golangci-lint)
config=$PWD/.golangci.yml
for module in $(hack/modules.sh); do
	(cd "$module" && "$linter" run --allow-parallel-runners --config "$config" ./...)
done
