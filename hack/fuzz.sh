#!/usr/bin/env bash
# Fuzz every target there is, or FUZZTARGETS of them drawn by lot, each for FUZZTIME (default 60s) on a core of its own, as many at
# a time as there are cores. Findings are written below testdata/fuzz of their package: `go test` runs it from then on, so keep it
# with what mends it. Exits with 1 when something was found.
set -uo pipefail
cd "$(dirname "$0")/.."
: "${FUZZTIME:=60s}"

# search fuzzes the target $2 of the package $1.
search() {
	local package=$1 target=$2 start=$SECONDS out ok=false input
	echo "fuzz $package $target for $FUZZTIME"
	# Inputs are hardly made smaller: that would take more of the time than to look for others. The end of the time itself may be
	# reported as an error (a race in internal/fuzz: stop compares with a context that is cancelled a moment later); nothing was found then.
	out=$(go test "$package" -run '^$' -parallel 1 -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x 2>&1) && ok=true
	if $ok || { grep -q '^ *context deadline exceeded$' <<<"$out" && ! grep -q 'Failing input\|panic' <<<"$out"; }; then
		echo "fuzz $package $target: ok ($((SECONDS - start)) s, $(grep -o 'execs: [0-9]*' <<<"$out" | tail -1))"
		return
	fi
	tail -40 <<<"$out"
	git ls-files -o --exclude-standard -- "$package/testdata/fuzz/$target" | while read -r input; do
		printf 'fuzz %s %s: %s\n' "$package" "$target" "$input"
		cat "$input"
	done
	echo "fuzz $package $target: FOUND" >&2
	return 1
}
export -f search
export FUZZTIME

# drawn passes FUZZTARGETS of the lines on, or all.
drawn() { if [[ -n ${FUZZTARGETS:-} ]]; then shuf -n "$FUZZTARGETS"; else cat; fi; }

git ls-files -co --exclude-standard '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z0-9]*' | sort |
	sed -E 's|^(.*)/[^/]*:func (.*)|./\1 \2|' | drawn | xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -c 'search "$@"' search || exit 1
