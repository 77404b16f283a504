#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets the programs a cluster is made of and keeps them outside the work tree, by version: downloads their releases where
# the hosts of those answer within 5 s, and else builds them from the Go module proxy. Says on stderr what it does and
# prints the folder on stdout. Cold: seconds to download, 10 minutes to build on two cores; warm: at once.
# Callers in parallel wait for one another. SHIPPER_BINARIES=build downloads nothing, SHIPPER_BINARIES=download builds
# nothing, SHIPPER_MIRROR=URL names a mirror of the releases. K8S names another minor version than the newest, one of
# those under versions; etcd and kwok are always the same. Without K8S a complete KUBEBUILDER_ASSETS is used as it is.
#   build.sh missing    prints the programs that there are not yet, and gets none
#   build.sh download   builds none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly name=controlplane programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
readonly silent=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/silent cache=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/controlplane
source ../cached.sh

# pinned prints the version of module $2 that the go.mod in folder $1 requires.
pinned() { awk -v module="$2" '{ for (i = 1; i < NF; i++) if ($i == module && $(i + 1) ~ /^v/) { print $(i + 1); exit } }' "$1/go.mod"; }

newest=$(pinned . k8s.io/kubernetes)
module=. # that says which Kubernetes to build
if [[ -n ${K8S:-} && $newest != "v$K8S."* ]]; then
	module=versions/$K8S
	if [[ ! -f $module/go.mod ]]; then
		say "no Kubernetes '$K8S' here: there are $(cd versions && echo *) and ${newest%.*}, and pin.sh makes others"
		exit 2
	fi
fi
version=$(pinned "$module" k8s.io/kubernetes)
readonly newest module version folder=$cache/$version

# complete succeeds if folder $1 has every program.
complete() {
	local program
	for program in "${programs[@]}"; do present "$1/$program" || return 1; done
}

assets=${KUBEBUILDER_ASSETS:-}
[[ -z ${K8S:-} ]] || assets=''
for candidate in "$assets" "$folder"; do
	if complete "$candidate"; then [[ ${1:-} == missing ]] || echo "$candidate"; exit 0; fi
done
if [[ ${1:-} == missing ]]; then missing; exit 0; fi

begin
for program in etcd kwok; do
	if present "$cache/$newest/$program" && ! present "$folder/$program"; then
		cp "$cache/$newest/$program" "$scratch/copy"
		mv "$scratch/copy" "$folder/$program"
	fi
done

# release prints the version of program $1.
release() {
	case $1 in
	etcd) pinned . go.etcd.io/etcd/server/v3 ;;
	kwok) pinned . sigs.k8s.io/kwok ;;
	*) echo "$version" ;;
	esac
}

releases=()
for program in $(missing); do releases+=("$program@$(release "$program")"); done
download ${releases[@]+"${releases[@]}"}
if [[ ${1:-} == download ]]; then echo "$folder"; exit 0; fi

IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w" # and, where Kubernetes still had the code of cloud providers, without that: it takes minutes to compile
for value in "gitVersion=$version" "gitMajor=$major" "gitMinor=$minor" gitTreeState=clean; do
	flags+=" -X k8s.io/component-base/version.$value -X k8s.io/client-go/pkg/version.$value" # an aggregator serves the second
done

for pattern in k8s.io/kubernetes go.etcd.io sigs.k8s.io/kwok; do # which Shipper has nothing of; -s drops what this leaves out
	GOFLAGS+=" -gcflags=$pattern/...=-dwarf=false"
done

# install builds programs in the module in folder $1, at once: while one is linked, the others are compiled.
install() {
	local where=$1 program packages='' status=0
	shift
	(($# > 0)) || return 0
	for program in "$@"; do
		case $program in
		etcd) packages+=' go.etcd.io/etcd/server/v3' ;; # which `go install` calls server
		kwok) packages+=' sigs.k8s.io/kwok/cmd/kwok' ;;
		*) packages+=" k8s.io/kubernetes/cmd/$program" ;;
		esac
	done
	compile "$*" "$packages" "$where" providerless install -ldflags "$flags" || status=$?
	keep server etcd
	for program in "$@"; do keep "$program" "$program"; done
	((status == 0)) || exit "$status"
}

shared=() ours=() # with the newest Kubernetes, and with the asked for
for program in $(missing); do
	case $program in
	etcd | kwok) shared+=("$program") ;;
	*) ours+=("$program") ;;
	esac
done
if [[ $module == . ]]; then
	install . ${shared[@]+"${shared[@]}"} ${ours[@]+"${ours[@]}"}
else
	install . ${shared[@]+"${shared[@]}"}
	install "$module" ${ours[@]+"${ours[@]}"}
fi
echo "$folder"
