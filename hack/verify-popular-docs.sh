#!/usr/bin/env bash
# Fail, and show the difference, when the table of docs/popular-charts.md is not as hack/update-popular-docs.sh writes it.
set -euo pipefail
cd "$(dirname "$0")/.."
go test ./cmd/shipperctl/chartcheck -run TestPopularChartsOfThePage
