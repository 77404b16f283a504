#!/usr/bin/env bash
# Print an in-toto statement of SLSA provenance for the files of a list of checksums: hack/provenance.sh CHECKSUMS
# It is not signed: the release workflow has it attested where that can be done.
set -euo pipefail
subjects=$(awk '{printf "%s{\"name\":\"%s\",\"digest\":{\"sha256\":\"%s\"}}", (NR > 1 ? "," : ""), $2, $1}' "$1")
cd "$(dirname "$0")/.."
cat <<JSON
{"_type":"https://in-toto.io/Statement/v1","subject":[$subjects],"predicateType":"https://slsa.dev/provenance/v1","predicate":{
"buildDefinition":{"buildType":"https://shipper.dev/shipper/hack/release.sh","externalParameters":{"version":"$(hack/version.sh)"},
"resolvedDependencies":[{"uri":"git+https://shipper.dev/shipper","digest":{"gitCommit":"$(git rev-parse HEAD)"}}]},
"runDetails":{"builder":{"id":"${BUILDER_ID:-local}","version":{"go":"$(go env GOVERSION)"}}}}}
JSON
