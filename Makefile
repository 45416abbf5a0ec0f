# `make` lists the targets. `make verify` and `make test` are what CI runs (.ci/run).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
TOOLS := $(CURDIR)/.tools
GOLANGCI_VERSION := 2.15.0
GOLANGCI := $(TOOLS)/golangci-lint

# What a test may take: the storms are long, and two slow cores run them with the race detector.
TEST_TIMEOUT ?= 15m
FUZZ_TIME ?= 20s
PKG ?= ./...
ARGS ?=

.PHONY: help run demo test verify bench lint fmt generate deps check-deps guards fuzz-short clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Serve what is in ./data (ARGS="--listen :8080 …")
	$(GO) run ./cmd/holdfast serve $(ARGS)

demo: ## Serve a cinema, a concert, a festival and a day of flights, with pretended payments
	$(GO) run ./cmd/holdfast demo $(ARGS)

test: check-deps ## Run all tests with the race detector (PKG=./internal/booking/ for one package)
	$(GO) test -race -timeout $(TEST_TIMEOUT) $(PKG)

verify: $(GOLANGCI) ## Everything about the code that is not a test of behaviour: format, lint, modules, tidy, generated files, build
	@echo "verify: gofmt"; out=$$(gofmt -l api cmd internal); [ -z "$$out" ] || { echo "not formatted (make fmt): $$out"; exit 1; }
	@echo "verify: go vet"; $(GO) vet ./...
	@echo "verify: golangci-lint"; $(GOLANGCI) run ./...
	@echo "verify: go.mod"; $(GO) mod tidy -diff
	@echo "verify: tidy"; $(GO) test -count=1 ./internal/tidy/
	@echo "verify: generated files"; $(MAKE) check-generated
	@echo "verify: builds without cgo"; CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/holdfast; CGO_ENABLED=0 $(GO) build ./...
	@echo "verify: ok"

lint: $(GOLANGCI) ## Run golangci-lint (PKG=… for one package)
	$(GOLANGCI) run $(PKG)

fmt: ## Format all Go files
	gofmt -w api cmd internal

generate: ## Make generated files anew
	$(GO) generate ./...

bench: ## Run a load scenario against an own server (ARGS="--scenario holds --format text")
	$(GO) run ./cmd/holdfast bench $(ARGS)

guards: ## Take each guard and unique index out of the store in turn: a test must go red each time (slow)
	@tests=$$($(GO) test -list '^TestGuards' ./internal/sqlite/); grep -q ^TestGuards <<<"$$tests" || { echo "guards: there is no TestGuards… in internal/sqlite"; exit 1; }
	HOLDFAST_TEST_GUARDS=1 $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestGuards' -v ./internal/sqlite/

fuzz-short: ## Fuzz every fuzz target for a short while (FUZZ_TIME=20s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
		for name in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$$file" | cut -c6-); do \
			echo "$$name in $$(dirname "$$file")"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) "$$(dirname "$$file")/"; \
		done; done

deps: ## Install what tests and verify need and this machine lacks (Debian; quick when nothing is missing)
	@command -v $(GO) >/dev/null || { echo "deps: Go is missing; get it from https://go.dev/dl/ (the version in go.mod or newer)"; exit 1; }
	@$(GO) mod download
	@$(MAKE) $(GOLANGCI)
	@if ! command -v zbarimg >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo "deps: installing zbar-tools"; apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends zbar-tools >/dev/null; \
		else \
			echo "deps: zbarimg is missing: install zbar-tools (apt) or zbar (brew); the test that scans a ticket's QR code with it is skipped until then"; \
		fi; fi
	@if ! { command -v gcc || command -v cc || command -v clang; } >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo "deps: installing gcc for the race detector"; apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends gcc libc6-dev >/dev/null; \
		else \
			echo "deps: a C compiler is missing: the race detector needs one (the program does not)"; exit 1; \
		fi; fi
	@echo "deps: ok"

# Says what a machine lacks before the tests run into it.
check-deps:
	@command -v gcc >/dev/null || command -v cc >/dev/null || command -v clang >/dev/null || { echo "test: the race detector needs a C compiler; run: make deps"; exit 1; }
	@command -v zbarimg >/dev/null || echo "test: zbarimg is missing, so no second reader tries the tickets' QR codes; run: make deps"

# The tool's own go.mod must not mix with ours: a folder of its own, only when the pinned version is not there.
.PHONY: $(GOLANGCI)
$(GOLANGCI):
	@if ! $(GOLANGCI) --version 2>/dev/null | grep -qF 'version $(GOLANGCI_VERSION) '; then \
		echo "deps: installing golangci-lint $(GOLANGCI_VERSION)"; \
		GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_VERSION); \
	fi

# Makes generated files anew in a copy of the tree and compares: verify never changes the tree.
.PHONY: check-generated
check-generated:
	@if git grep -qE '^//go:generate ' -- '*.go'; then \
		copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
		git ls-files -co --exclude-standard -z | tar --null -T - --ignore-failed-read -c 2>/dev/null | tar -x -C "$$copy"; \
		(cd "$$copy" && $(GO) generate ./...); \
		git ls-files -co --exclude-standard -z | while IFS= read -r -d '' f; do \
			[ ! -e "$$f" ] || cmp -s "$$f" "$$copy/$$f" || { echo "not current (make generate): $$f"; exit 1; }; done; \
	fi

clean: ## Remove what builds and benches leave (not ./data)
	rm -rf bin *.test *.prof *.out
