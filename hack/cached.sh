#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the build scripts share. To be sourced, with $name, which begins the messages. Scripts of foreign programs
# (hack/controlplane, hack/prometheus) set three more: $folder outside the work tree keeps the programs, $programs
# are their names, and $silent is the folder that remembers hosts that did not answer.

say() { printf '%s: %s\n' "$name" "$*" >&2; }

case ${SHIPPER_BINARIES:-} in
'' | build | download) ;;
*)
	say "SHIPPER_BINARIES is '$SHIPPER_BINARIES': set it to build or download, or do not set it"
	exit 2
	;;
esac

case ${SHIPPER_MIRROR:-} in
'' | http://?* | https://?*) ;;
*)
	say "SHIPPER_MIRROR has to be an address like https://mirror.example/releases"
	exit 2
	;;
esac

# present succeeds if the file $1 may be a program: an empty file or a folder is none.
present() { [[ -f $1 && -s $1 && -x $1 ]]; }

# missing prints those of $programs that $folder does not have.
missing() {
	local program
	for program in "${programs[@]}"; do present "$folder/$program" || echo "$program"; done
}

# begin waits until no other build runs, then makes $scratch, where programs are until they are complete, and keeps
# what the caller exports from changing what is built.
begin() {
	mkdir -p "$folder"
	if command -v flock >/dev/null; then # the kernel opens this lock when its holder ends, however it ends
		exec 9>>"$folder/.lock"
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
	export GOBIN=$scratch/bin GOFLAGS=-mod=readonly GOWORK=off GOOS='' GOARCH=''
	mkdir "$GOBIN"
}

# download gets programs, as in etcd@v3.7.0, from their releases, unless SHIPPER_BINARIES=build. What it cannot get is
# left to be built, unless SHIPPER_BINARIES=download. SHIPPER_MIRROR=URL is asked in place of the hosts of the releases.
download() {
	local program status=0 flags=(-out "$scratch/downloaded" -silent "$silent")
	[[ $# -gt 0 && ${SHIPPER_BINARIES:-} != build ]] || return 0
	[[ ${SHIPPER_BINARIES:-} != download ]] || flags+=(-required)
	[[ -z ${SHIPPER_MIRROR:-} ]] || flags+=(-mirror "$SHIPPER_MIRROR")
	say "downloading ${*%@*}"
	(cd ../.. && go run ./hack/download "${flags[@]}" "$@" >"$scratch/obtained" 9>&-) || status=$?
	while read -r program; do mv "$scratch/downloaded/$program" "$folder/$program"; done <"$scratch/obtained"
	if ((status != 0)) && [[ ${SHIPPER_BINARIES:-} == download ]]; then
		say "SHIPPER_BINARIES=download, and a download failed: see above; SHIPPER_BINARIES=build builds from source"
		exit "$status"
	fi
}

# compile runs `go` with the arguments from $5 on, and says meanwhile how far it is. It builds the programs that $1 lists,
# which are the packages that $2 lists, in the module of the folder $3, with the build tags $4. They go to the folder
# $GOBIN or -o. It returns the status of `go` and prints what failed.
compile() {
	local what=$1 packages=$2 where=$3 tags=$4 began=$SECONDS told=-5 status=0 pid lister='' total='' log
	local -x GOGC=${GOGC:-400} # a sixth less of CPU time, for a quarter more of memory
	shift 4
	log=$(mktemp "${TMPDIR:-/tmp}/shipper-build.XXXXXX")
	say "building $what"
	# shellcheck disable=SC2086 # a list of words
	go "$1" -C "$where" -v -tags "$tags" "${@:2}" $packages >"$log" 2>&1 9>&- &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if [[ -z $lister ]] && ((SECONDS - began >= 2)); then # what is left of a build that is not over at once
			# shellcheck disable=SC2086 # a list of words
			go list -C "$where" -tags "$tags" -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' $packages >"$log.left" 2>/dev/null 9>&- &
			lister=$!
		elif [[ -n $lister && -z $total ]] && ! kill -0 "$lister" 2>/dev/null; then
			total=$({ compiled "$log"; cat "$log.left"; } | sort -u | grep -c . || :)
		fi
		if ((SECONDS - began >= told + 10)); then
			told=$((SECONDS - began))
			progress "$(compiled "$log" | grep -c . || :)" "${total:-0}" "$told" "$(grep -c '^go: downloading' "$log" || :)"
		fi
	done
	wait "$pid" || status=$?
	[[ -z $lister ]] || kill "$lister" 2>/dev/null || :
	if ((status == 0)); then
		((SECONDS - began < 5)) || say "built $what in $((SECONDS - began)) s"
	else
		grep -v -e '^[^[:space:]]*$' -e '^go: downloading' "$log" >&2 || :
		say "cannot build $what"
	fi
	rm -f "$log" "$log.left"
	return "$status"
}

# compiled prints the packages in the output of `go build -v`.
compiled() { grep '^[^[:space:]#][^[:space:]]*$' "$1" || :; }

# progress says how far a build is: of $1 packages of $2, or 0 if that is not known yet, after $3 s, with $4 modules downloaded.
progress() {
	local text="$1 packages" left
	if (($2 > 0)); then
		text="$1 of $2 packages"
	elif (($1 == 0 && $4 > 0)); then
		text="$4 modules downloaded"
	fi
	text+=", $3 s"
	if (($3 >= 20 && $1 >= 50 && $2 > $1)); then
		left=$(($3 * ($2 - $1) / $1))
		if ((left >= 90)); then text+=", about $(((left + 30) / 60)) min left"; else text+=", about $left s left"; fi
	fi
	if (($2 > 0 && $1 >= $2)); then text+=", linking"; fi
	say "$text"
}

# keep moves programs from $GOBIN to $folder. $1 are the names that `go install` gave them, $2 those that they get.
keep() {
	[[ ! -x $GOBIN/$1 ]] || mv "$GOBIN/$1" "$folder/$2"
}
