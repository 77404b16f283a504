#!/usr/bin/env bash
# Make everything a release consists of in dist/release, the same bytes from the same commit, Go and certificate authorities:
#   VERSION=v0.1.0 hack/release.sh
# The steps of .github/workflows/release.yaml are these; publishing and signing are steps of the workflow alone.
set -euo pipefail
cd "$(dirname "$0")/.."
VERSION=$(hack/version.sh)
export VERSION
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export PLATFORMS_IMAGE=${PLATFORMS_IMAGE:-linux/amd64,linux/arm64}
out=dist/release
if [[ -n $(git status --porcelain) ]]; then
	echo "release: the tree has changes that no commit has: the provenance would name another one" >&2
	exit 1
fi
rm -rf dist && mkdir -p "$out"

echo "1 of 5: shipperctl for each operating system"
hack/dist.sh
find dist -maxdepth 1 -type f ! -name checksums.txt -exec cp {} "$out" \;

echo "2 of 5: the image for $PLATFORMS_IMAGE"
PLATFORMS=$PLATFORMS_IMAGE hack/image.sh
cp bin/shipper-image.tar "$out/shipper-image-$VERSION.tar"

echo "3 of 5: the chart"
chart=$(mktemp -d)
trap 'rm -rf "$chart"' EXIT
cp -r manifests/chart "$chart/shipper"
sed -i "s/^version: .*/version: ${VERSION#v}/; s/^appVersion: .*/appVersion: $VERSION/" "$chart/shipper/Chart.yaml"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode='u+rw,go+r-w' -C "$chart" -cf - shipper |
	gzip -n9 >"$out/shipper-chart-${VERSION#v}.tgz"

echo "4 of 5: what the programs are made of"
hack/binaries.sh "$chart/bin" shipper-webhook shipper-reconciler shipperctl
for program in "$chart"/bin/*; do
	go version -m "$program" | sed "1s|.*|$(basename "$program"): $(go env GOVERSION)|"
done >"$out/sbom.txt"

echo "5 of 5: checksums and provenance"
(cd "$out" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$chart/checksums.txt"
mv "$chart/checksums.txt" "$out/checksums.txt"
hack/provenance.sh "$out/checksums.txt" >"$out/provenance.json"
echo "dist/release has $(find "$out" -type f | wc -l) files of $VERSION"
