#!/usr/bin/env bash
# Run what `make test` leaves out because it takes long: each row below, all of them also when one fails, with a table of their times at
# the end. NIGHTLY names rows to run instead of all, for example NIGHTLY='kill fuzz'. SEEDS is how many stories `simulation` plays (5000, an
# hour on two cores), FUZZTIME how long each target is fuzzed (60s). Exits with 1 when a row failed.
set -uo pipefail
cd "$(dirname "$0")/.."
export SHIPPER_NIGHTLY=1 # env.Nightly looks at it

declare -A rows=(
	[kill]="go run ./hack/runtests -slots 1 -only test/kill -- -timeout 180m" # the reconciler is killed after each write, in two ways
	[shipperctl]="go run ./hack/runtests -slots 1 -only test/shipperctl"     # commands are interrupted after each write
	[replicas]="go run ./hack/runtests -slots 1 -only test/replicas"         # replaced under load
	[restore]="go run ./hack/runtests -slots 1 -only test/restore"           # with other authorities and tokens
	[guard]="go run ./hack/runtests -slots 1 -only test/guard"               # what policies cost
	[certmanager]="go run ./hack/runtests -slots 1 -only test/certmanager"
	[matrix]="hack/test-matrix.sh" # the oldest versions of Kubernetes and the newest, and upgrades of Shipper on each
	[rules]="go test ./apis/rules/strategy -count=1 -timeout 0 -seeds 100000" # random rollouts without any cluster, ten minutes
	[simulation]="make simulation SEEDS=${SEEDS:-5000}"
	[kills]="ALL=1 go test ./test/simulation -count=1 -timeout 0 -run EveryWrite" # the same stories, killed at every write in two ways
	[fuzz]="hack/fuzz.sh"
)
order="rules simulation kills kill shipperctl replicas restore guard certmanager matrix fuzz"

for row in ${NIGHTLY:-$order}; do
	if [[ -z ${rows[$row]:-} ]]; then
		echo "nightly: there is no row $row, only: $order" >&2
		exit 1
	fi
done
SHIPPER_TEST_BIN=$(hack/test-binaries.sh)
export SHIPPER_TEST_BIN

table=() failed=false interrupted=false
trap 'interrupted=true' INT TERM
for row in ${NIGHTLY:-$order}; do
	echo "nightly: $row: ${rows[$row]}"
	start=$SECONDS result=ok
	bash -c "${rows[$row]}" || { result=FAIL failed=true; }
	table+=("$(printf '%-5s %5d min %2d s  %s' "$result" $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60)) "$row")")
	! $interrupted || break
done
printf '\n'
printf '%s\n' "${table[@]}"
! $interrupted || exit 130
if $failed; then
	echo "nightly: failed: see above" >&2
	exit 1
fi
