#!/usr/bin/env bash
# Write the templates of the Helm chart from the manifests that kustomize takes. hack/verify-chart.sh is its twin.
# OUT (default: manifests/chart/templates) is where they go.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:=manifests/chart/templates}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run ./hack/chart "$work"
rm -rf "$OUT"
mkdir -p "$OUT"
cp -r "$work"/. "$OUT"
