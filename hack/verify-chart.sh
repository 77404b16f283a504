#!/usr/bin/env bash
# Fail, and show the difference, when the chart's templates are not as hack/update-chart.sh writes them. That they render to what
# the overlays are is a test, in test/chart.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
OUT=$work/templates hack/update-chart.sh
diff -ru manifests/chart/templates "$work/templates" || {
	echo "manifests/chart/templates is stale: run hack/update-chart.sh" >&2
	exit 1
}
