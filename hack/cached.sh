#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the build scripts of foreign programs share (hack/controlplane, hack/prometheus). To be sourced, with two
# variables: $name begins the messages, and $folder outside the work tree keeps the programs.

say() { printf '%s: %s\n' "$name" "$*" >&2; }

# begin waits until no other build runs, then makes $scratch, where programs are until they are complete, and keeps
# what the caller exports from changing what is built.
begin() {
	mkdir -p "$folder"
	if command -v flock >/dev/null; then # the kernel opens this lock when its holder ends, however it ends
		exec 9>"$folder/.lock"
		flock -n 9 || { say "another build is running, waiting for it"; flock 9; }
	else
		until mkdir "$folder/.building" 2>/dev/null; do
			say "waiting for another build (none is running? rmdir $folder/.building)"; sleep 5
		done
	fi
	rm -rf "$folder"/.build.*
	scratch=$(mktemp -d "$folder/.build.XXXXXX")
	trap 'rm -rf "$scratch"; rmdir "$folder/.building" 2>/dev/null || :' EXIT
	trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
	# An empty GOFLAGS would not hide one set by `go env -w`.
	export GOBIN=$scratch GOFLAGS=-mod=readonly GOWORK=off GOOS='' GOARCH=''
}

# build installs program $1, called $2 by `go install`, unless it is there; `go` gets the arguments from $3 on. It
# prints the time meanwhile.
build() {
	local program=$1 installed=$2 began=$SECONDS told=0 status=0 pid
	shift 2
	[[ -x "$folder/$program" ]] && return
	say "building $program"
	go "$@" >"$scratch/log" 2>&1 9>&- &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if ((SECONDS - began >= told + 15)); then
			told=$((SECONDS - began)); say "building $program: $told s"
		fi
	done
	wait "$pid" || status=$?
	((status == 0)) || { cat "$scratch/log" >&2; say "cannot build $program"; exit "$status"; }
	mv "$scratch/$installed" "$folder/$program"
	say "built $program in $((SECONDS - began)) s"
}
