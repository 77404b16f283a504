#!/usr/bin/env bash
# Run all tests. Packages that need clusters start their own, one fleet each; two run at a time, as on the smallest machine.
# TEST_FLAGS adds flags, for example TEST_FLAGS='-run TestRollout -v'.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "testing (a cold build takes some minutes)"
# shellcheck disable=SC2086 # TEST_FLAGS is a list of words
go test -p 2 -timeout 20m ${TEST_FLAGS:-} ./...
