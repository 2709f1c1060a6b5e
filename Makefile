# Names for what people do here. `make help` lists them.
SHELL := /bin/bash
export GOTOOLCHAIN := local
GO ?= go
LINT := $(GO) tool -modfile=tools/golangci-lint.mod golangci-lint
PROTOGEN := $(GO) run -modfile=tools/proto.mod -tags protogen ./tools/protogen
# Static binaries, and no C compiler is needed: the storage engine would compile a C library where there is one.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath
BIN := bin
PLUGINS := $(notdir $(wildcard plugins/*))

# What has to compile where people work on plugins and look at clusters; plugin processes need Linux.
ELSEWHERE := linux/arm64 darwin/arm64 windows/amd64

.PHONY: help run run-real test build check lint gen gen-check portable fuzz interop proof bench simulate soak clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: build ## show streamd at work, with a broker of its own: needs Go only; Ctrl-C drains and sums up
	@$(BUILD) -o $(BIN)/demo ./tools/demo
	@exec $(BIN)/demo $(DEMO)

run-real: build ## the same on a real RocketMQ, fetched by Maven (needs a JDK)
	@cd test/interop && $(BUILD) -o ../../$(BIN)/demo-real ./cmd/demo
	@exec $(BIN)/demo-real $(DEMO)

# The race detector needs a C compiler; Go says whether it has found one.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

test: ## pass the tests: needs Go only, no JVM and no network
	@$(if $(RACE),,echo "there is no C compiler: the tests run without the race detector")
	$(GO) test $(RACE) -shuffle=on -timeout 20m ./...

build: ## leave bin/streamd and the first-party plugins in bin/plugins
	$(BUILD) -o $(BIN)/streamd ./cmd/streamd
	@mkdir -p $(BIN)/plugins
	@for p in $(filter-out README.md,$(PLUGINS)); do $(BUILD) -o $(BIN)/plugins/$$p ./plugins/$$p || exit 1; done

check: gen-check lint portable ## format, vet, lint, import rules, generated files current, other systems compile
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	cd test/interop && $(GO) vet -tags proof ./...
	$(GO) test ./internal/archtest

portable: ## compile the SDK and the command line for other systems
	@for p in $(ELSEWHERE); do echo "compiling for $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./sdk/... ./cmd/streamd || exit 1; done

lint: ## lint both modules
	$(LINT) run ./...
	cd test/interop && $(GO) tool -modfile=../../tools/golangci-lint.mod golangci-lint run -c ../../.golangci.yml --build-tags proof ./...

gen: ## write the generated files anew: the plugin contract's Go code, the reference, the schema
	$(PROTOGEN)
	$(GO) generate ./...

gen-check: ## fail when a generated file is not current
	$(PROTOGEN) -check
	$(GO) generate ./...
	@git diff --exit-code --stat -- docs/reference configs || { echo "generated files were not current: commit what 'make gen' wrote"; exit 1; }

fuzz: ## fuzz every decoder, T=30s each
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz); do echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(T),30s) $$p || exit 1; done; done

interop: build ## prove the wire against a real RocketMQ with Java and Go peers (needs a JDK and Maven)
	cd test/interop && $(GO) test -timeout 60m -count=1 ./...

proof: build ## everything that happens to groups, at once, on two real brokers and the embedded one, and the migration: about ten minutes
	cd test/interop && $(GO) test -tags proof -timeout 30m -count=1 -v -run 'TestProof|TestMigration' .

bench: build ## measure; docs/benchmarks.md tells how to read it
	cd test/interop && $(GO) run ./cmd/bench $(BENCH)

simulate: ## let SEEDS=1000 stories happen to the pure cores, and a tenth as many to the whole engine; a failing seed is named
	$(GO) test -v -count=1 -timeout 0 ./runtime/internal/sim -run 'TestSeeds$$' -seeds $(or $(SEEDS),1000)
	$(GO) test -count=1 -timeout 0 ./runtime -run 'TestSeeds$$' -seeds $$(( ($(or $(SEEDS),1000) + 9) / 10 ))

soak: build ## the ledger loops without a bound, until Ctrl-C
	cd test/interop && $(GO) test -timeout 0 -count=1 -run 'TestLedger' ./ -args -soak

clean: ## remove what was built, and fetched jars
	rm -rf $(BIN) .cache
