#!/usr/bin/env bash
# Lint: the compass of rooms (depguard), names, errors, lengths. .golangci.yml has the rules and their reasons.
# What it finds is mended by hand; hack/update-format.sh mends what a machine can.
set -euo pipefail
cd "$(dirname "$0")/.."
linter=$(hack/tool.sh golangci-lint)
config=$PWD/.golangci.yml
export linter config
# Two modules at a time: the linter reads the packages of the small ones, one after the other, while it judges those of the main one.
hack/modules.sh | xargs -P 2 -I {} bash -c 'cd "$1" && "$linter" run --allow-parallel-runners --config "$config" ./...' lint {}
