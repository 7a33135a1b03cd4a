# All targets set up what they need in .venv on first use; nothing is installed outside this folder.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := domain projections adapters replay src/xce/__init__.py tests benchmarks tools

.DEFAULT_GOAL := help
.PHONY: help setup demo slurm-demo test check lint format types imports docs wheel interpreters acceptance soak fuzz campaign bench clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml tools/setup-venv.sh
	@sh tools/setup-venv.sh $(VENV)
	@touch $@

setup: $(READY) ## make the virtual environment

demo: $(READY) ## run the main job: from an empty folder to a log and a report in under a minute
	@$(BIN)/xce demo --out xce-demo --force

slurm-demo: $(READY) ## xce beside a real Slurm on this machine, with its packages; needs root
	@$(BIN)/python -m tools.slurm_lab.demo --install

test: $(READY) ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: lint types imports docs test wheel ## all that CI checks

lint: $(READY)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

format: $(READY) ## format and mend what ruff can
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

types: $(READY)
	$(BIN)/mypy
	$(BIN)/basedpyright

imports: $(READY)
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/python tools/generate.py --check

wheel: $(READY)
	sh tools/check-wheel.sh $(BIN)/python

interpreters: $(READY) ## same bytes on every Python from 3.11 that is found
	$(BIN)/python tools/interpreters.py

acceptance: $(READY) ## the session against the plain reference on 2,000 random clusters each (long)
	HYPOTHESIS_PROFILE=acceptance $(BIN)/python -m pytest -n 2 tests/reference

soak: $(READY) ## all tests with many more examples, kills, failovers and calls (hours)
	HYPOTHESIS_PROFILE=soak XCE_KEPT_WALKS=5000 XCE_KILLS=300 XCE_FAILOVERS=30 XCE_PROVISIONER_KILLS=200 XCE_DEATHS=0 XCE_BOUNDARIES=3 XCE_FUZZ_EXAMPLES=1000 XCE_READER_TEXTS=5000 XCE_HISTORIES=10000 XCE_FAULT_SEEDS=5000 XCE_PLANT_SEEDS=1000 XCE_LIVE_SESSIONS=500 $(BIN)/python -m pytest -n 2 tests

campaign: $(READY) ## 100,000 runs under seeded failure (an hour on two cores; goes on where it was)
	$(BIN)/xce sim faults --runs 100000 --file .campaign.jsonl

fuzz: $(READY) ## hunt for texts of scripts and files that break a reader (an hour)
	$(BIN)/python -m tests.fuzz --seconds 3600

BENCHMARKS := resreq demand deltas traces projections log audit failover lmstat provisioner slurm

bench: $(READY) ## run the benchmarks and print ratios
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

clean: ## remove all that can be made again
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis xce-demo .interpreters
