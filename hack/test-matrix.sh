#!/usr/bin/env bash
# Run the end-to-end tests on the oldest Kubernetes that is promised, and on the newest; MATRIX names others, as
# management/application with nothing for the newest. A Kubernetes that is not in the cache yet is downloaded, or built in about 10 minutes.
#   MATRIX='1.33/1.30 1.33/1.33' TEST_FLAGS='-run TestBlocks' hack/test-matrix.sh
set -euo pipefail
cd "$(dirname "$0")/.."
failed=()
for pair in ${MATRIX:-1.30/1.27 /}; do
	export K8S=${pair%/*} K8S_APPLICATIONS=${pair#*/}
	name="management ${K8S:-newest}, applications ${K8S_APPLICATIONS:-newest}"
	echo "testing with Kubernetes: $name"
	hack/controlplane/build.sh >/dev/null
	K8S=$K8S_APPLICATIONS hack/controlplane/build.sh >/dev/null
	# shellcheck disable=SC2086 # a list of words
	go test -timeout 30m ${TEST_FLAGS:-} ./test/e2e || failed+=("$name")
done
if ((${#failed[@]})); then
	printf 'test-matrix: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
