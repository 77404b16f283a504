#!/usr/bin/env bash
# Build a release again from its tag, or from any commit, and compare each file with a release that was made before:
#   VERSION=v0.1.0 FROM=dist/release hack/reproduce.sh
# FROM is the folder with the published files. The Go version has to be that of go.mod's toolchain, and the certificate
# authorities those of the release: CA_CERTIFICATES=FILE, which is in the published image.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=$(hack/version.sh)
from=$(cd "${FROM:-dist/release}" && pwd)
commit=$(git rev-parse --verify --quiet "$VERSION^{commit}") ||
	commit=$(sed -n 's/.*"gitCommit":"\([0-9a-f]*\)".*/\1/p' "$from/provenance.json")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/shipper"
git -C "$work/shipper" checkout -q "$commit"
echo "building $VERSION from $commit"
(cd "$work/shipper" && unset SOURCE_DATE_EPOCH && VERSION=$VERSION hack/release.sh >&2)
if ! diff "$from/checksums.txt" "$work/shipper/dist/release/checksums.txt"; then
	echo "reproduce: the files above differ (< published, > built here)" >&2
	exit 1
fi
(cd "$from" && sha256sum --quiet --check checksums.txt)
echo "every file of $VERSION is the same, bit for bit"
