#!/usr/bin/env bash
# Run every hack/verify-*.sh, go on after a failure, and fail at the end when one did. Nothing in the tree is changed.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
for check in hack/verify-*.sh; do
	name=${check#hack/verify-}
	name=${name%.sh}
	start=$SECONDS
	echo "verify $name"
	if "$check"; then
		echo "verify $name: ok ($((SECONDS - start)) s)"
	else
		echo "verify $name: FAILED ($((SECONDS - start)) s)"
		failed+=("$name")
	fi
done
if ((${#failed[@]})); then
	echo "verify: failed: ${failed[*]}" >&2
	exit 1
fi
