#!/usr/bin/env bash
# Run every hack/verify-*.sh, two at a time, of which the linter is one most of the time; print what one says when it ends; go on after a
# failure, and fail at the end when one did. Nothing in the tree is changed.
set -uo pipefail
cd "$(dirname "$0")/.."

# verify runs the check $1.
verify() {
	local start=$SECONDS out status=0 result=ok
	out=$("hack/verify-$1.sh" 2>&1) || status=1 result=FAILED
	[[ -z $out ]] || printf '%s\n' "$out"
	echo "verify $1: $result ($((SECONDS - start)) s)"
	return "$status"
}
export -f verify

{
	echo lint
	printf '%s\n' hack/verify-*.sh | sed 's|^hack/verify-||; s|[.]sh$||' | grep -vx lint
} | xargs -P 2 -I {} bash -c 'verify "$1"' verify {} || {
	echo "verify: failed: see above" >&2
	exit 1
}
