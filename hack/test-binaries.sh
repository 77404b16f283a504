#!/usr/bin/env bash
# Build Shipper's binaries once for all packages of tests, and print the folder that has them, for SHIPPER_TEST_BIN. Its name is a hash of
# their build IDs: `go test`, which notes the variables that a test reads, runs a package again when the binaries have changed.
set -euo pipefail
cd "$(dirname "$0")/.."

# With the state of git in them they would be others after each commit.
GOFLAGS="${GOFLAGS:-} -buildvcs=false" make -s build BIN="$PWD/bin" >&2
hash=$(for name in shipper-webhook shipper-reconciler shipperctl; do go tool buildid "bin/$name"; done | sha256sum)
all=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/test-binaries
folder=$all/${hash:0:16}
mkdir -p "$all"
if [[ ! -d $folder ]]; then
	find "$all" -mindepth 1 -maxdepth 1 -mtime +1 -exec rm -rf {} + # of older code, if no run of today uses them
	new=$(mktemp -d "$all/new.XXXXXX")
	cp bin/shipper-webhook bin/shipper-reconciler bin/shipperctl "$new"
	chmod 755 "$new"
	mv -T "$new" "$folder" 2>/dev/null || rm -rf "$new" # another run was faster
fi
touch "$folder"
echo "$folder"
