#!/usr/bin/env bash
# Print the path of a pinned tool, building it from the module proxy first when it is not in the cache.
# Usage: hack/tool.sh controller-gen|golangci-lint
set -euo pipefail

case "${1:-}" in
controller-gen) module=sigs.k8s.io/controller-tools/cmd/controller-gen version=v0.23.0 ;;
golangci-lint) module=github.com/golangci/golangci-lint/v2/cmd/golangci-lint version=v2.15.0 ;;
*)
	echo "hack/tool.sh: unknown tool '${1:-}': name controller-gen or golangci-lint" >&2
	exit 2
	;;
esac

cache="${XDG_CACHE_HOME:-$HOME/.cache}/shipper/tools"
# The compiler is part of the name: a linter must be built with the Go it reads.
tool="$cache/$1-$version-$(go env GOVERSION)"
if [[ ! -x $tool ]]; then
	echo "building $1 $version (once; some minutes)" >&2
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/build.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	(cd / && GOFLAGS='' GOWORK=off GOBIN="$work" go install "$module@$version") >&2
	mv "$work/$1" "$tool"
fi
echo "$tool"
