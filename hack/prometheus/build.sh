#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Prometheus from the Go module proxy and keeps it outside the work tree, by version. Says on stderr what it
# does and prints the folder on stdout. Cold: 2 to 3 minutes on 2 CPUs; warm: at once. Callers in parallel wait for
# one another. It discovers targets from its configuration, files and HTTP only: the SDKs of clouds are not compiled.
# It serves the API without the pages of the web interface.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly name=prometheus module=github.com/prometheus/prometheus
version=$(awk -v module="$module" '{ for (i = 1; i < NF; i++) if ($i == module) print $(i + 1) }' go.mod)
readonly version folder=${XDG_CACHE_HOME:-$HOME/.cache}/shipper/prometheus/$version
source ../cached.sh

if [[ ! -x $folder/prometheus ]]; then
	begin
	flags="-s -w -X github.com/prometheus/common/version.Version=${version#v}"
	build prometheus prometheus install -tags remove_all_sd -ldflags "$flags" "$module/cmd/prometheus"
fi
echo "$folder"
