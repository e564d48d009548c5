# virdeck: `make help` says what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOLS := bin/tools
LAB_MODULES := lab/guest/proxy lab/origin lab/probe
# FUZZ is how many inputs each fuzz test gets in `make check`, FRAMES how many
# those of what a daemon sends, which must be believed least, and SLOW how many
# those whose every input costs milliseconds. They are counts,
# since go test calls the end of a time a failure when it comes in the middle of
# an input (golang/go issue 75804).
FUZZ ?= 20000x
FRAMES ?= 100000x
SLOW ?= 2000x
SOAK ?= 20
ARGS ?=

.PHONY: help build run demo test test-lab test-truth lab check fmt-check vet lint lab-modules race tidy deadcode fuzz bench mutate soak fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/virdeck
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/virdeck .

run: build ## the console; on simulated hosts when there is no configuration file
	@if [ -n "$(ARGS)" ] || [ -e config.toml ] || [ -e /etc/virdeck/config.toml ] || \
	    [ -e "$${XDG_CONFIG_HOME:-$$HOME/.config}/virdeck/config.toml" ]; \
	then exec bin/virdeck $(ARGS); else exec bin/virdeck --demo; fi

test: ## every test that needs Go alone
	$(GO) test ./...

test-lab: build ## everything against real libvirt hosts with real VMs (root, Debian 12)
	lab/install.sh
	$(GO) test -tags lab -count=1 -p 1 -timeout 30m ./lab/e2e/ ./lab/truth/

test-truth: ## of test-lab, the provider alone: contract, outages, storms
	lab/install.sh
	$(GO) test -tags lab -count=1 -timeout 30m ./lab/truth/

lab: build ## the console on two real hosts with three VMs each; takes them down afterwards
	lab/console.sh

check: fmt-check vet lint lab-modules race tidy deadcode fuzz ## all that must hold before a commit is good

fmt-check:
	@d=$$(gofmt -l . ); [ -z "$$d" ] || { gofmt -d .; echo "not gofmt'ed: $$d" >&2; exit 1; }

vet:
	$(GO) vet ./...
	$(GO) vet -tags lab ./lab/...

lint: $(TOOLS)/golangci-lint
	$(TOOLS)/golangci-lint config verify
	$(TOOLS)/golangci-lint run ./...

lab-modules:
	@for m in $(LAB_MODULES); do (cd $$m && echo "vet $$m" && $(GO) vet ./... && $(GO) build -o /dev/null ./...); done
	@for s in .ci/run lab/*.sh lab/hosts/*.sh lab/guest/*.sh; do bash -n $$s; done

race:
	$(GO) test -race -short ./...

tidy:
	$(GO) mod tidy -diff

deadcode: $(TOOLS)/deadcode
	@d=$$($(TOOLS)/deadcode -test -tags lab ./...); [ -z "$$d" ] || { echo "$$d" >&2; echo "unreachable functions" >&2; exit 1; }

fuzz:
	@grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r f; do \
	    grep -oE '^func Fuzz[A-Za-z0-9_]+' $$f | while read -r _ name; do \
	        case $$name in FuzzFrame*) n=$(FRAMES);; FuzzConsole|FuzzOpen_*) n=$(SLOW);; *) n=$(FUZZ);; esac; \
	        echo "fuzz $$(dirname $$f) $$name $$n"; \
	        $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $$n -fuzzminimizetime 5x $$(dirname $$f) </dev/null; done; done

bench: ## benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

mutate: ## break the code in known ways; a test must go red for each
	$(GO) run ./internal/mutate

soak: ## long storms, the tests over and over under the race detector (SOAK=20 rounds), fuzz tests with fifty times the inputs
	VIRDECK_SOAK=1 $(GO) test -race -count=1 -timeout 0 ./provider/libvirt/ ./store/
	$(GO) test -race -count=$(SOAK) -timeout 0 ./...
	$(MAKE) fuzz FUZZ=1000000x FRAMES=2000000x SLOW=50000x

fmt: ## gofmt
	gofmt -w .

clean: ## remove what was built
	rm -rf bin

$(TOOLS)/golangci-lint: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(TOOLS)/deadcode: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ golang.org/x/tools/cmd/deadcode
