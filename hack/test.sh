#!/usr/bin/env bash
# Run all tests of all modules, the longest packages first: hack/runtests, which prints a table at the end. Packages that need clusters start
# their own, one fleet each; TEST_SLOTS packages run at a time, two by default, as on the smallest machine, and one more that needs no
# clusters. TEST_FLAGS adds flags, for example TEST_FLAGS='-run TestRollout -v'. With FUZZTIME set, as in CI, fuzz targets run for that long
# each when all tests have passed, in a copy of the tree: all, or as many as FUZZTARGETS says. What such a search finds depends on luck and
# not on the change that is tested: it is reported at the end and fails nothing. Keep the input that is printed as a seed, which does.
# `make fuzz` fails at once.
set -euo pipefail
cd "$(dirname "$0")/.."
SHIPPER_TEST_BIN=$(hack/test-binaries.sh)
export SHIPPER_TEST_BIN

# shellcheck disable=SC2086 # a list of words
go run ./hack/runtests -slots "${TEST_SLOTS:-2}" -- ${TEST_FLAGS:-} || {
	echo "test: failed: see above" >&2
	exit 1
}
if [[ -n ${FUZZTIME:-} ]]; then
	copy=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/fuzz # the same each time: elsewhere, all would be built again
	rm -rf "$copy"
	mkdir -p "$copy"
	git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$copy" 2>/dev/null || true # deleted and not committed
	git -C "$copy" init -q # fuzz.sh asks git for the files
	"$copy"/hack/fuzz.sh || echo "test: fuzzing found something, see above; it is no fault of this change, and to be mended" >&2
fi
