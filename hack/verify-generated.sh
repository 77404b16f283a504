#!/usr/bin/env bash
# Fail when what hack/update-generated.sh writes differs from what is committed. Works on a copy: the tree is not touched.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r go.mod go.sum apis hack "$copy"
mkdir -p "$copy/manifests/crd"
"$copy/hack/update-generated.sh"
diff -ru apis "$copy/apis" && diff -ru -x kustomization.yaml manifests/crd "$copy/manifests/crd" || {
	echo "generated files are stale: run make generate" >&2
	exit 1
}
