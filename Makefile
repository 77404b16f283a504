# Shipper. `make help` lists what there is; README.md says which to run first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Without the folder's name in what is compiled, a clone finds in Go's cache what another one has compiled.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

BIN ?= bin
FLEET ?= .fleet
PREPARE := BIN=$(BIN) hack/prepare.sh

##@ See it work
.PHONY: demo
demo: ## Roll an application out on three real control planes and block it at admission (KEEP=1 leaves them up)
	@$(PREPARE) controlplane ./test/demo
	@go run ./test/demo

.PHONY: demo-bluegreen
demo-bluegreen: ## Blue/green on two clusters: preview, gate, switch, a block that holds a step, a broken image, retreat
	@$(PREPARE) controlplane ./test/demo
	@go run ./test/demo bluegreen

.PHONY: demo-checks
demo-checks: ## Canaries that metrics decide: one passes, one with errors in one cluster retreats
	@$(PREPARE) controlplane prometheus ./test/demo
	@go run ./test/demo checks

.PHONY: demo-fleet
demo-fleet: ## A namespace on three clusters: a fourth joins, one is tainted, one fails, an edit is corrected
	@$(PREPARE) controlplane ./test/demo
	@go run ./test/demo fleet

.PHONY: demo-pipeline
demo-pipeline: ## A shipyard of two stages: tests, two approvals, a block, and a version with errors that is rolled back
	@$(PREPARE) controlplane prometheus ./test/demo
	@go run ./test/demo pipeline

.PHONY: demo-charts
demo-charts: ## Charts of others, unedited: podinfo, the online boutique, PostgreSQL and WordPress; canary, block, rollback
	@$(PREPARE) controlplane ./test/demo
	@go run ./test/demo charts

.PHONY: demo-waves
demo-waves: ## Waves over four clusters: canary, approval, two at a time, a block and an override for one, a bad image aborted
	@$(PREPARE) controlplane ./test/demo
	@go run ./test/demo waves

.PHONY: fleet-up
fleet-up: ## Start one management and two application clusters to play with (K8S=1.33: of that version)
	@$(PREPARE) controlplane ./test/fleet/up
	@go run ./test/fleet/up -dir $(FLEET)

.PHONY: fleet-env
fleet-env: ## Print what a shell has to evaluate to use them
	@go run ./test/fleet/up -dir $(FLEET) -bin $(BIN) -env

.PHONY: shipper-up
shipper-up: build ## Run Shipper on them, when shipperctl has set the management cluster up
	@go run ./test/fleet/up -dir $(FLEET) -bin $(BIN) -shipper -charts "$(CHARTS)"

.PHONY: try
try: ## Start a fleet, Shipper on it and a repository of your charts, ready to apply (CHARTS=folder; CHARTS=chart)
	@FLEET=$(FLEET) CHARTS="$(CHARTS)" hack/try.sh

.PHONY: fleet-down
fleet-down: ## Stop what fleet-up and shipper-up started
	@go run ./test/fleet/up -dir $(FLEET) -down

##@ Build
.PHONY: build
build: ## Build the three binaries into bin/
	@BIN=$(BIN) hack/build.sh

.PHONY: image
image: ## Assemble the image as an OCI archive, bin/shipper-image.tar, without a container engine
	@hack/image.sh

.PHONY: dist
dist: ## Make what people download into dist/: shipperctl for each operating system, checksums, krew's manifest
	@hack/dist.sh

.PHONY: release
release: ## Make every file of a release in dist/release: archives, image, chart, SBOM, checksums, provenance (VERSION=v0.1.0)
	@hack/release.sh

.PHONY: reproduce
reproduce: ## Build a release again from its commit and compare it bit for bit (VERSION=v0.1.0 FROM=dist/release)
	@hack/reproduce.sh

.PHONY: release-dry-run
release-dry-run: verify test api-check release reproduce ## Run each step of the release workflow that publishes nothing

.PHONY: api-check
api-check: ## Compare kinds, commands and flags with an earlier version; fail for what breaks users (BASE: the last tag)
	@base=$${BASE:-$$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true)}; \
	if [[ -n $$base ]]; then go run ./hack/apicheck -base "$$base"; else echo "api-check: there is no earlier tag: name a commit with BASE"; fi

.PHONY: controlplane
controlplane: ## Download or build etcd, the Kubernetes binaries and kwok once, into a cache outside this tree (K8S=1.30: of that version)
	@hack/controlplane/build.sh >/dev/null
	@[[ -z "$${K8S_APPLICATIONS:-}" ]] || K8S=$$K8S_APPLICATIONS hack/controlplane/build.sh >/dev/null

.PHONY: prometheus
prometheus: ## Download or build Prometheus once, into a cache outside this tree
	@hack/prometheus/build.sh >/dev/null

.PHONY: generate
generate: ## Write everything that is generated
	@hack/update-generated.sh
	@hack/update-api-docs.sh
	@hack/update-cli-docs.sh
	@hack/update-screens.sh
	@hack/update-popular-docs.sh
	@hack/update-rbac-docs.sh
	@hack/update-chart.sh
	@hack/update-format.sh
	@hack/update-modules.sh

##@ Documentation
.PHONY: pictures
pictures: hack/site/node_modules ## Draw the pictures of the docs from docs/pictures/*.pikchr (needs Node.js 20)
	@node hack/site/draw.mjs docs/pictures

.PHONY: recording
recording: build hack/site/node_modules ## Record a rollout in a terminal as an SVG, on a fleet of its own (needs Node.js 20)
	@hack/site/record.sh docs/pictures/rollout-recording.svg

.PHONY: site
site: hack/site/node_modules ## Build the documentation site, with search, into dist/site (needs Node.js 20)
	@cd hack/site && node build.mjs

.PHONY: site-check
site-check: site ## Check it in Chromium: links, contrast, phones, dark (CHROMIUM=/usr/bin/chromium)
	@cd hack/site && node check.mjs

hack/site/node_modules: hack/site/package-lock.json
	@echo "installing what the site is built with (once; a minute)"
	@cd hack/site && npm ci --no-audit --no-fund --loglevel=error && touch node_modules

##@ Check
.PHONY: verify
verify: ## Check everything that is checked without running it: generated files, format, modules, lint
	@hack/verify.sh

.PHONY: test
test: controlplane prometheus ## Run all tests, those on real control planes too; what takes hours is in nightly
	@hack/test.sh

.PHONY: nightly
nightly: controlplane prometheus ## Run what takes long: kills after every write, load, versions, seeds, fuzzing (NIGHTLY='kill fuzz')
	@hack/nightly.sh

.PHONY: test-matrix
test-matrix: ## Run the end-to-end tests on the oldest Kubernetes and on the newest
	@hack/test-matrix.sh

.PHONY: bench
bench: controlplane ## Measure how fast Shipper is, each row beside its floor (ROW=rollout; BENCH_FLAGS='-clusters 1')
	@go run ./test/bench $(if $(ROW),-row $(ROW)) $(BENCH_FLAGS)

.PHONY: soak
soak: controlplane ## Edit 1,000 Applications at random for 20 minutes, then look what has grown, repeats or is stuck (SOAK_FLAGS)
	@go run ./test/bench/soak $(SOAK_FLAGS)

.PHONY: simulate
simulate: ## Run the reconciler against API servers in memory, for more clusters than there is room for (SIMULATE_FLAGS)
	@go run ./test/simulate $(SIMULATE_FLAGS)

.PHONY: simulation
simulation: ## Kill and disturb whole rollouts in virtual time: SEEDS=1000 (FIRST=1), one again by SEED=4711 STORY=rollout TIMES=10, MUTATE=1
ifdef MUTATE
	@go run ./test/simulation/mutate $(MUTATE_FLAGS)
else
	@$(if $(SEED),SEED=$(SEED) TIMES=$(TIMES),ALL=1 SEEDS=$(or $(SEEDS),200) FIRST=$(FIRST)) STORY=$(STORY) \
		go test ./test/simulation -count=1 -timeout 0 $(if $(SEED),-v -run 'TestSeed$$',$(if $(SEEDS),-run 'TestSeeds$$'))
endif

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME each (default 60s), or FUZZTARGETS of them by lot; their seeds are tests anyway
	@hack/fuzz.sh

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
