#!/usr/bin/env bash
# Record a rollout on a fleet of its own, typed into a shell and shown as an SVG that moves: hack/site/record.sh OUT.svg
# The second rollout of examples/02-canary-two-regions: a canary, a block that stops it, and its end.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/$1
work=$(mktemp -d)
export FLEET=$work/fleet
trap 'make -s fleet-down >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

make -s fleet-up
eval "$(make -s fleet-env)"
shipperctl clusters setup management --webhook-url "$WEBHOOK_URL" >/dev/null
make -s shipper-up
shipperctl clusters join -f "$FLEET/clusters.yaml" >/dev/null
kubectl wait --for=condition=Ready clusters --all --timeout=2m >/dev/null

echo "rolling the first release out"
sed 's/replicaCount: 10/replicaCount: 8/' examples/02-canary-two-regions/app.yaml >"$work/first.yaml"
cp examples/02-canary-two-regions/app.yaml "$work/app.yaml"
cp examples/03-rollout-block/global.yaml "$work/dns-outage.yaml"
kubectl apply -f "$work/first.yaml" 2>/dev/null
kubectl wait --for=condition=ReleaseSynced app/storefront --timeout=2m
rel=$(kubectl get rel -o name)
kubectl patch "$rel" --type=merge -p '{"spec":{"targetStep":3}}'
kubectl wait --for=condition=Complete "$rel" --timeout=3m

cd "$work"
node "$OLDPWD/hack/site/record.mjs" >rollout.cast <<'LINES'
kubectl apply -f app.yaml
shipperctl rollout advance storefront && shipperctl rollout status storefront --wait
shipperctl rollout status storefront
kubectl apply -f dns-outage.yaml
shipperctl rollout advance storefront
shipperctl block lift dns-outage --global
shipperctl rollout advance storefront && shipperctl rollout status storefront --wait
shipperctl rollout advance storefront && shipperctl rollout status storefront --wait
shipperctl rollout status storefront
LINES
"$OLDPWD/hack/site/node_modules/.bin/svg-term" --in rollout.cast --out "$out" --width 100 --height 26 --padding 12 --no-cursor
ls -l "$out"
