#!/usr/bin/env bash
# Start a fleet, Shipper on it, and a chart repository that serves a folder of yours: CHARTS=folder hack/try.sh
# Charts that you edit are served as they are on disk. A webhook or reconciler that ends is started again. `make fleet-down` removes everything.
set -euo pipefail
charts=${CHARTS:+$(realpath "$CHARTS")}
cd "$(dirname "$0")/.."
if [[ -z $charts ]]; then
	charts=test/charts/hello-world-0.1.0
	echo "CHARTS names no folder: trying Helm's example, $charts"
fi
[[ -d $charts ]] || {
	echo "try: CHARTS=$charts is not a folder: name a chart, or a folder of charts" >&2
	exit 1
}
make -s fleet-up
eval "$(make -s fleet-env)"
if [[ -e $FLEET/shipper/ready ]]; then
	echo "try: Shipper is up on this fleet: run \`make fleet-down\` first" >&2
	exit 1
fi
shipperctl clusters setup management --webhook-url "$WEBHOOK_URL"
CHARTS=$charts make -s shipper-up
shipperctl clusters join -f "$FLEET/clusters.yaml"
kubectl wait --for=condition=Ready clusters --all --timeout=2m
echo
echo "Ready. Your charts are at $(cat "$FLEET/shipper/charts-url"). In this folder:"
echo
echo "  eval \"\$(make -s fleet-env)\""
for app in "$FLEET"/shipper/*.yaml; do
	echo "  kubectl apply -f ${app#"$PWD"/}"
done
name=$(basename "$app" .yaml)
echo "  shipperctl rollout status $name --wait"
echo "  shipperctl rollout advance $name"
echo "  make fleet-down"
echo
echo "After an edit of a chart, raise its version in Chart.yaml and in the Application."
