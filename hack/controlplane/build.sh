#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs a cluster is made of from the Go module proxy and keeps them outside the work tree, by
# version. Says on stderr what it does and prints the folder on stdout. Cold: 5 to 10 minutes; warm: at once.
# Callers in parallel wait for one another. A complete KUBEBUILDER_ASSETS is used as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
readonly kwok=v0.8.0
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' go.mod)
readonly version folder=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/controlplane/$version

say() { printf 'controlplane: %s\n' "$*" >&2; }

# complete tells whether folder $1 has every program.
complete() {
	local program
	for program in "${programs[@]}"; do [[ -x "$1/$program" ]] || return 1; done
}

for candidate in "${KUBEBUILDER_ASSETS:-}" "$folder"; do
	if complete "$candidate"; then echo "$candidate"; exit 0; fi
done

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

# What a caller exports must not change what is built. An empty GOFLAGS would not hide one set by `go env -w`.
export GOBIN=$scratch GOFLAGS=-mod=readonly GOWORK=off GOOS='' GOARCH=''
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w"
for value in "gitVersion=$version" "gitMajor=$major" "gitMinor=$minor" gitTreeState=clean; do
	flags+=" -X k8s.io/component-base/version.$value"
done

# build installs program $1, which is package $2 and is called $3 by `go install`, telling the time meanwhile.
build() {
	local program=$1 began=$SECONDS told=0 status=0 pid
	[[ -x "$folder/$program" ]] && return
	say "building $program"
	go install -ldflags "$flags" "$2" >"$scratch/log" 2>&1 9>&- &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.2
		if ((SECONDS - began >= told + 15)); then
			told=$((SECONDS - began)); say "building $program: $told s"
		fi
	done
	wait "$pid" || status=$?
	((status == 0)) || { cat "$scratch/log" >&2; say "cannot build $program"; exit "$status"; }
	mv "$scratch/${3:-$program}" "$folder/$program"
	say "built $program in $((SECONDS - began)) s"
}

build etcd go.etcd.io/etcd/server/v3 server
for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
	build "$program" "k8s.io/kubernetes/cmd/$program"
done
build kwok "sigs.k8s.io/kwok/cmd/kwok@$kwok"
echo "$folder"
