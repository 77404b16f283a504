# Shipper. `make help` lists what there is; README.md says which two to run first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := bin
BINARIES := shipper-webhook shipper-reconciler shipperctl

##@ See it work
.PHONY: demo
demo: build controlplane ## Roll an application out on three real control planes and block it at the gate (KEEP=1 leaves them up)
	@go run ./test/demo

.PHONY: fleet-up
fleet-up: controlplane ## Start one management and two application clusters to play with
	@go run ./test/fleet/up

.PHONY: fleet-down
fleet-down: ## Stop what fleet-up started
	@go run ./test/fleet/up -down

##@ Build
.PHONY: build
build: ## Build the three binaries into bin/
	@echo "building $(BINARIES) (the first time takes some minutes)"
	@mkdir -p $(BIN)
	@for b in $(BINARIES); do go build -o $(BIN)/$$b ./cmd/$$b; done

.PHONY: controlplane
controlplane: ## Build etcd, the Kubernetes binaries and kwok once, into a cache outside this tree
	@hack/controlplane/build.sh >/dev/null

.PHONY: generate
generate: ## Write everything that is generated
	@hack/update-generated.sh
	@hack/update-api-docs.sh
	@hack/update-rbac-docs.sh
	@hack/update-format.sh
	@hack/update-modules.sh

##@ Check
.PHONY: verify
verify: ## Check everything that is checked without running it: generated files, format, modules, lint
	@hack/verify.sh

.PHONY: test
test: controlplane ## Run all tests, those on real control planes too
	@hack/test.sh

.PHONY: bench-admission
bench-admission: controlplane ## Measure what the gate costs, beside a no-op webhook, and how soon a block holds
	@go test ./webhook -run '^$$' -bench Review
	@go run ./test/bench/admission

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME each (default 60s); their seeds are tests anyway
	@hack/fuzz.sh

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
