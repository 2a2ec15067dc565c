# Every target is a thin call to cargo or to xtask (the project's own scripts, in Rust).
# A target is listed by `make help` when it carries a comment after two hashes.

CARGO   ?= cargo
PREFIX  ?= /usr/local
DESTDIR ?=
# Seconds for each fuzz target, and where its inputs begin: the same every time, with 0 others.
SECONDS ?= 10
SEED    ?= 1
# Where builds go; also where scripts keep virtual environments and other scratch.
TARGET  := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)

XTASK   := $(CARGO) run --quiet --package xtask --
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)
# Workspaces of their own, so that what only they need stays out of the product's lock file.
OTHERS  := fuzz bench/render

# A fresh machine builds each crate once: incremental files would only cost disk and time.
ifdef CI
export CARGO_INCREMENTAL := 0
endif

.DEFAULT_GOAL := help
.PHONY: help demo test setup check units doctests e2e fuzz counts bench gen docs build install clean

help: ## Show this list.
	@echo "Halite. The two commands to know: make demo, make test."
	@echo
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'
	@echo
	@echo "Variables: DESTDIR=, PREFIX=/usr/local (install); SECONDS=10 and SEED=1 (fuzz); CARGO_TARGET_DIR (all)."

demo: ## Build, then show a master with three minions at work (DEMO_KEEP=1 leaves them running).
	@$(XTASK) demo

test: setup check units doctests e2e fuzz counts ## Everything: what continuous integration runs.
	@echo "make test: all passed."

setup: ## Install what the tests call, where it is missing (servers are installed by the tests that need them).
	@$(XTASK) setup

check: ## Formatting, lints, tidy, generated lists; no test is run.
	$(CARGO) fmt --all --check
	@for folder in $(OTHERS); do $(CARGO) fmt --check --manifest-path $$folder/Cargo.toml || exit 1; done
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(XTASK) tidy
	$(XTASK) gen --check

units: ## Unit and case tests (cargo-nextest when present).
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --workspace --exclude halite-e2e --no-fail-fast --status-level slow
else
	$(CARGO) test --workspace --exclude halite-e2e --no-fail-fast --quiet --all-targets
endif

doctests: ## Examples in the documentation comments.
	$(CARGO) test --workspace --quiet --doc

e2e: ## End-to-end tests: real processes, genuine Salt beside ours (installed by pip), and the demo.
	$(CARGO) build --quiet --package halite
	$(CARGO) test --quiet --package halite-e2e --no-fail-fast
	@$(XTASK) demo >"$(TARGET)/demo.log" 2>&1 || { cat "$(TARGET)/demo.log"; exit 1; }

fuzz: ## Fuzz every parser reachable from outside, SECONDS each (SEED=0: other inputs every time).
	$(XTASK) fuzz $(SECONDS) $(SEED)

counts: ## Print how many recorded cases the case files hold.
	@$(XTASK) counts

bench: ## Measure side by side with genuine Salt and print ratios (installs it into a scratch folder).
	$(XTASK) bench

gen: ## Write the generated lists.
	$(XTASK) gen

docs: ## Write the reference pages.
	$(XTASK) docs

build: ## Build the release binary.
	$(CARGO) build --release --package halite

install: build ## Install the binary and Salt's command names below DESTDIR and PREFIX.
	install -D -m 0755 "$(TARGET)/release/halite" "$(DESTDIR)$(PREFIX)/bin/halite"
	"$(DESTDIR)$(PREFIX)/bin/halite" install-links --force "$(DESTDIR)$(PREFIX)/bin" | \
	    while read -r link; do ln -sfn halite "$$link"; done

clean: ## Remove what was built.
	$(CARGO) clean
