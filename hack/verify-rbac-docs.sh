#!/usr/bin/env bash
# Fail, and show the difference, when the tables of docs/security.md are not as hack/update-rbac-docs.sh writes them.
set -euo pipefail
cd "$(dirname "$0")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
OUT=$page hack/update-rbac-docs.sh
diff -u docs/security.md "$page" || {
	echo "docs/security.md is stale: run hack/update-rbac-docs.sh" >&2
	exit 1
}
