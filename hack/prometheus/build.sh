#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets Prometheus and keeps it outside the work tree, by version: downloads its release where the host of that answers
# within 5 s, and else builds it from the Go module proxy. Says on stderr what it does and prints the folder on stdout.
# Cold: seconds to download, 2 minutes to build on two cores; warm: at once. Callers in parallel wait for one another.
# The variables and arguments are those of hack/controlplane/build.sh. The binary discovers targets from its
# configuration, files and HTTP only: the SDKs of clouds are not compiled. It has no pages of the web interface.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly name=prometheus module=github.com/prometheus/prometheus programs=(prometheus)
version=$(awk -v module="$module" '{ for (i = 1; i < NF; i++) if ($i == module) print $(i + 1) }' go.mod)
readonly silent=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/silent
readonly version folder=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/prometheus/$version
source ../cached.sh

if [[ ${1:-} == missing ]]; then missing; exit 0; fi
if ! present "$folder/prometheus"; then
	begin
	IFS=. read -r _ minor patch <<<"$version"
	download "prometheus@v$((minor / 100)).$((minor % 100)).$patch" # v0.315.0 is the module of release v3.15.0
	if [[ ${1:-} != download ]] && ! present "$folder/prometheus"; then
		flags="-s -w -X github.com/prometheus/common/version.Version=${version#v}"
		status=0
		compile prometheus "$module/cmd/prometheus" . remove_all_sd install -ldflags "$flags" || status=$?
		keep prometheus prometheus
		((status == 0)) || exit "$status"
	fi
fi
echo "$folder"
