#!/usr/bin/env bash
# Write what controller-gen generates: deep copies and the CRDs. hack/verify-generated.sh is its twin.
# OUT (default: this tree) is where the CRDs go; deep copies are written beside the types.
set -euo pipefail
cd "$(dirname "$0")/.."
gen=$(hack/tool.sh controller-gen)
"$gen" object:headerFile=hack/boilerplate.go.txt paths=./apis/shipper/...
"$gen" crd paths=./apis/shipper/... output:crd:dir=manifests/crd
