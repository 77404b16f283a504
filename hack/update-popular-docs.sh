#!/usr/bin/env bash
# Write the table of docs/popular-charts.md, as `shipperctl chart check` judges these charts. TestPopularChartsOfThePage compares it.
# Without the charts (SHIPPER_CHARTS, or shared/charts beside the checkout) the page stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
go test ./cmd/shipperctl/chartcheck -run TestPopularChartsOfThePage -count=1 -update >/dev/null
