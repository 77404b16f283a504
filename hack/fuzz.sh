#!/usr/bin/env bash
# Fuzz every target there is, one after the other, each for FUZZTIME (default 60s). What is found is written below testdata/fuzz
# of its package: `go test` runs it from then on, so keep it with what mends it.
set -uo pipefail
cd "$(dirname "$0")/.."
: "${FUZZTIME:=60s}"
failed=()
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	start=$SECONDS
	echo "fuzz $package $target for $FUZZTIME"
	# Inputs are hardly made smaller: that would take more of the time than to look for others.
	if out=$(go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x 2>&1); then
		echo "fuzz $package $target: ok ($((SECONDS - start)) s, $(grep -o 'execs: [0-9]*' <<<"$out" | tail -1))"
	else
		echo "$out" | tail -40
		failed+=("$package $target")
	fi
done < <(git ls-files -co --exclude-standard '*_test.go' | xargs grep -o '^func Fuzz[A-Za-z0-9]*' | sed 's/:func /:/' | sort)
if ((${#failed[@]})); then
	printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
