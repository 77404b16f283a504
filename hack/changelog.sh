#!/usr/bin/env bash
# Print what CHANGELOG.md says of a version; fail if it says nothing, or that the version is not released: hack/changelog.sh v0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."
text=$(awk -v version="## $1" 'index($0, "## ") == 1 {on = $0 == version || index($0, version ",") == 1} on' CHANGELOG.md)
if [[ -z $text || $text == *"not released yet"* ]]; then
	echo "changelog: CHANGELOG.md has no section of $1, or says that it is not released yet: give it its date" >&2
	exit 1
fi
tail -n +2 <<<"$text"
