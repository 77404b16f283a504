#!/usr/bin/env bash
# Fail, and show the difference, when a Go file is not as hack/update-format.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$("$(hack/tool.sh golangci-lint)" fmt --diff ./...)
if [[ -n $out ]]; then
	echo "$out"
	echo "files are not formatted: run make generate" >&2
	exit 1
fi
