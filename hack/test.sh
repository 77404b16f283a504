#!/usr/bin/env bash
# Run all tests of all modules. Packages that need clusters start their own, one fleet each; two run at a time, as on the smallest
# machine. TEST_FLAGS adds flags, for example TEST_FLAGS='-run TestRollout -v'. With FUZZTIME set, as in CI, fuzz targets run for
# that long each when all tests have passed, in a copy of the tree: all, or as many as FUZZTARGETS says. What such a search finds
# depends on luck and not on the change that is tested: it is reported at the end and fails nothing. Keep the input that is printed as
# a seed, which does. `make fuzz` fails at once.
set -euo pipefail
cd "$(dirname "$0")/.."

# tests runs those of the module $1, of $2 packages at a time.
tests() {
	local module=$1 fresh=
	echo "testing module $module (a cold build takes some minutes)"
	# Of files outside of a module Go does not notice that they have changed: other modules' tests, which read this one's, run again.
	[[ $module == . ]] || fresh=-count=1
	# What vet would say the linter says, of tests too: hack/verify-lint.sh.
	# shellcheck disable=SC2086 # both are lists of words
	(cd "$module" && go test -p "$2" -vet=off -timeout 40m $fresh ${TEST_FLAGS:-} ./...) || {
		echo "test: failed: module $module" >&2
		return 1
	}
}
export -f tests

failed=false
tests . 2 || failed=true
hack/modules.sh | { grep -vx '[.]' || true; } | xargs -P 2 -I{} bash -c 'tests {} 1' || failed=true
if $failed; then
	echo "test: failed: see above" >&2
	exit 1
fi
if [[ -n ${FUZZTIME:-} ]]; then
	copy=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/fuzz # the same each time: elsewhere, all would be built again
	rm -rf "$copy"
	mkdir -p "$copy"
	git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$copy" 2>/dev/null || true # deleted and not committed
	git -C "$copy" init -q # fuzz.sh asks git for the files
	"$copy"/hack/fuzz.sh || echo "test: fuzzing found something, see above; it is no fault of this change, and to be mended" >&2
fi
