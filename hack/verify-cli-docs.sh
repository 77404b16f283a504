#!/usr/bin/env bash
# Fail, and show the difference, when docs/cli.md is not as hack/update-cli-docs.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
OUT=$page hack/update-cli-docs.sh
diff -u docs/cli.md "$page" || {
	echo "docs/cli.md is stale: run hack/update-cli-docs.sh" >&2
	exit 1
}
