#!/usr/bin/env bash
# Fail, and show the difference, when docs/api.md is not as hack/update-api-docs.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
page=$(go run ./hack/apidocs)
diff -u docs/api.md - <<<"$page" || {
	echo "docs/api.md is stale: run hack/update-api-docs.sh" >&2
	exit 1
}
