#!/usr/bin/env bash
# Print the version that is built: VERSION, or the tag of the commit, or else one that names the commit.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -n ${VERSION:-} ]]; then
	echo "$VERSION"
elif described=$(git describe --tags --match 'v*' --dirty 2>/dev/null); then
	echo "$described"
else
	echo "v0.0.0-$(git describe --always --dirty)"
fi
