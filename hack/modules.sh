#!/usr/bin/env bash
# Print the folders of this repository's Go modules, the main one first. A test that runs foreign programs has a module of
# its own: what those require must not decide about the versions that Shipper ships with. hack/controlplane and hack/prometheus, which
# name programs and have no code, are not among them.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -co --exclude-standard 'go.mod' '*/go.mod' ':!hack/controlplane' ':!hack/prometheus' | xargs -n1 dirname | sort
