#!/usr/bin/env bash
# Write the tables of docs/security.md that say what Shipper may, from manifests/rbac. hack/verify-rbac-docs.sh is its twin.
# OUT (default: docs/security.md) is where the page goes.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=docs/security.md}"
tables=$(go run ./hack/rbacdocs)
page=$(awk -v tables="$tables" '
	/^<!-- end of rights -->$/ {within = 0}
	!within {print}
	/^<!-- rights: / {within = 1; print ""; print tables; print ""}
' docs/security.md)
printf '%s\n' "$page" >"$OUT"
