#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Get ready to run Shipper on control planes on this machine: hack/prepare.sh controlplane [prometheus] [PACKAGE…]
# It builds Shipper's programs, compiles the packages, and gets the foreign programs that hack/controlplane/build.sh and
# hack/prometheus/build.sh name. Those that can be downloaded are, while Shipper is built; the others are built after it:
# they share a third of their packages with it, which are compiled once that way.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly name=prepare
source hack/cached.sh

scripts=() packages=()
for argument in "$@"; do
	case $argument in
	./*) packages+=("$argument") ;;
	*) scripts+=("hack/$argument/build.sh") ;;
	esac
done

# each runs the scripts with an argument, for each version of Kubernetes that the environment names.
each() {
	local script
	for script in "${scripts[@]}"; do
		"$script" "$@"
		if [[ $script == */controlplane/* && -n ${K8S_APPLICATIONS:-} ]]; then K8S=$K8S_APPLICATIONS "$script" "$@"; fi
	done
}

wanted=$(each missing | sort -u | tr '\n' ' ')
downloads=''
if [[ -n $wanted ]]; then
	case ${SHIPPER_BINARIES:-} in
	build) say "the first start builds ${wanted}and Shipper: 10 to 15 minutes on two quiet cores; later ones take seconds" ;;
	*)
		say "the first start downloads ${wanted% }, or builds what is not to be had within 5 s, and builds Shipper:"
		say "about 5 minutes on two quiet cores with downloads, 10 to 15 without; later starts take seconds"
		say "building the program that downloads"
		go build -o /dev/null ./hack/download # at first: it needs what Shipper needs, too
		set -m # a group of processes of its own, to be stopped as one
		each download >/dev/null &
		set +m
		downloads=$!
		trap 'kill -TERM -- "-$downloads" 2>/dev/null || :' EXIT
		trap 'exit 130' INT TERM
		;;
	esac
fi
BIN=${BIN:-bin} hack/build.sh ${packages[@]+"${packages[@]}"}
[[ -z $downloads ]] || wait "$downloads"
SHIPPER_BINARIES=build each >/dev/null
