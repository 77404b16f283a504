#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs a cluster is made of from the Go module proxy and keeps them outside the work tree, by
# version. Says on stderr what it does and prints the folder on stdout. Cold: 5 to 10 minutes; warm: at once.
# Callers in parallel wait for one another. K8S names another minor version than the newest, one of those under versions; etcd and
# kwok are always the same. Without K8S a complete KUBEBUILDER_ASSETS is used as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly name=controlplane programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/controlplane
source ../cached.sh

# pinned prints the version of Kubernetes that the go.mod in folder $1 is for.
pinned() { awk '{ for (i = 1; i < NF; i++) if ($i == "k8s.io/kubernetes") print $(i + 1) }' "$1/go.mod"; }

newest=$(pinned .)
module=. # that says which Kubernetes to build
if [[ -n ${K8S:-} && $newest != "v$K8S."* ]]; then
	module=versions/$K8S
	if [[ ! -f $module/go.mod ]]; then
		say "no Kubernetes '$K8S' here: there are $(cd versions && echo *) and ${newest%.*}, and pin.sh makes others"
		exit 2
	fi
fi
version=$(pinned "$module")
readonly newest module version folder=$cache/$version

# complete succeeds if folder $1 has every program.
complete() {
	local program
	for program in "${programs[@]}"; do [[ -x "$1/$program" ]] || return 1; done
}

assets=${KUBEBUILDER_ASSETS:-}
[[ -z ${K8S:-} ]] || assets=''
for candidate in "$assets" "$folder"; do
	if complete "$candidate"; then echo "$candidate"; exit 0; fi
done

begin
IFS=. read -r major minor _ <<<"${version#v}"
flags="-s -w" # and, where Kubernetes still had the code of cloud providers, without that: it takes minutes to compile
for value in "gitVersion=$version" "gitMajor=$major" "gitMinor=$minor" gitTreeState=clean; do
	flags+=" -X k8s.io/component-base/version.$value -X k8s.io/client-go/pkg/version.$value" # an aggregator serves the second
done

# program builds program $1, which is package $2 of the module in folder $3 and is called $4 by `go install`.
program() { build "$1" "${4:-$1}" -C "$3" install -tags providerless -ldflags "$flags" "$2"; }

for program in etcd kwok; do
	if [[ -x $cache/$newest/$program && ! -x $folder/$program ]]; then
		cp "$cache/$newest/$program" "$scratch/copy"
		mv "$scratch/copy" "$folder/$program"
	fi
done
program etcd go.etcd.io/etcd/server/v3 . server
for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
	program "$program" "k8s.io/kubernetes/cmd/$program" "$module"
done
program kwok sigs.k8s.io/kwok/cmd/kwok .
echo "$folder"
