# kcm: one command for everything. `make help` lists the targets.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
JOBS ?= 6 # test processes: whole systems mostly wait
# What speaks to the server itself; the rest speaks to kcm's own processes.
ON_REDIS := redisio store coordination manager reconcile nodes controllers/scheduler
SPREAD := --dist loadscope --no-loadscope-reorder
SHARED := -n $(JOBS) $(SPREAD)
COMPUTING := -n logical $(SPREAD) # a process per processor, for tests that never wait
PIP_FLAGS := --disable-pip-version-check --progress-bar off -q
UP_FLAGS ?=
FAULTS ?= 300
SEED ?= 1
MINUTES ?= 150
BASE ?=
COMPARE_FLAGS ?=
E2E_TEST ?=
CONFORMANCE_FLAGS ?=

.DEFAULT_GOAL := help

# Tests start hundreds of processes, each of which would compile kcm anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# What is locked is installed, also for the build: nothing else is fetched.
$(VENV)/.installed: pyproject.toml locks/dev.txt
	@echo "Setting up $(VENV) (once; about half a minute) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r locks/dev.txt
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@
	@echo "Set up."

.PHONY: install
install: $(VENV)/.installed ## Install kcm and its tools into .venv

.PHONY: up
up: install ## Start everything on this machine, until Ctrl-C
	@exec $(BIN)/kcm up $(UP_FLAGS)

.PHONY: test
test: install ## Run the test suite; `make scenarios` and `make chaos` run what takes longer
	$(PYTEST) $(COMPUTING) tests/unit tests/upstream
	$(PYTEST) $(SHARED) -m 'not chaos and not long and not compose' --ignore=tests/unit --ignore=tests/upstream

.PHONY: test-newest
test-newest: install ## Run the suite with the newest and the oldest versions of what kcm needs
	$(BIN)/python -m tools.other_versions $(VERSIONS)

.PHONY: lock
lock: install ## Renew the locked versions, and show which have changed
	$(BIN)/python tools/lock.py

.PHONY: coverage
coverage: install ## Run the unit tests; their coverage must reach the floor (coverage report shows it)
	$(PYTEST) $(COMPUTING) tests/unit --cov --cov-report=

.PHONY: test-compose
test-compose: install ## Build the images and run both compositions on Docker or podman
	PATH="$(abspath $(BIN)):$$PATH" $(PYTEST) tests/compose -m compose

.PHONY: test-redis
test-redis: install ## Run the store, bus and queue tests against a redis-server on the PATH
	@command -v redis-server >/dev/null || { echo "redis-server is not installed: apt-get install redis-server" >&2; exit 1; }
	KCM_TEST_SERVER=redis-server $(PYTEST) $(SHARED) -m 'not chaos' $(addprefix tests/integration/,$(ON_REDIS))

.PHONY: scenarios
scenarios: install ## Run the whole-system scenarios and all other tests that `make test` leaves out as long
	$(PYTEST) -m 'scenario or long' tests/integration tests/scenarios tests/charts

.PHONY: chaos
chaos: install ## Break things in a loop against real processes (about a quarter of an hour)
	$(PYTEST) tests/chaos -m chaos

.PHONY: chaos-hosts
chaos-hosts: install ## Break three hosts of a network: FAULTS=300 SEED=1 (an hour and more; needs root)
	$(BIN)/python -m tests.chaos.hosts --faults $(FAULTS) --seed $(SEED)

.PHONY: soak
soak: install ## Run kcm for MINUTES=150 under a client, and tell which process grows
	$(BIN)/python -m tests.scenarios.soak --minutes $(MINUTES)

.PHONY: bench
bench: install ## Measure, as ratios to raw Redis and Celery of the same run
	$(BIN)/python -m bench

.PHONY: bench-smoke
bench-smoke: install ## Run every measurement at smoke size, to see that it works (a minute)
	$(BIN)/python -m bench --quick

.PHONY: bench-compare
bench-compare: install ## Measure BASE=commit and this tree in turns (COMPARE_FLAGS=--help says more)
	$(BIN)/python -m bench.compare $(COMPARE_FLAGS) $(BASE)

.PHONY: conformance
conformance: install ## Run Kubernetes' conformance suite, E2E_TEST=program (CONFORMANCE_FLAGS=--help says more)
	$(BIN)/python -m tools.conformance run $(if $(E2E_TEST),--e2e-test "$(E2E_TEST)") $(CONFORMANCE_FLAGS)

.PHONY: docs
docs: install ## Build the site of the documents into site/; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: docs-serve
docs-serve: install ## Show the site at http://127.0.0.1:8003 and follow changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict --dev-addr 127.0.0.1:8003

.PHONY: release-check
release-check: install ## Build, install the wheel into an empty environment, try kcm up from it
	$(BIN)/python tools/release_check.py

.PHONY: lint
lint: install ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: type
type: install ## Check types
	$(BIN)/mypy

.PHONY: arch
arch: install ## Check the layers: who may import whom
	$(BIN)/lint-imports

.PHONY: check
check: lint type arch docs test ## What CI checks on this machine's server

.PHONY: clean
clean: ## Remove .venv and caches; the state folder stays
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: stats
stats: install ## Measure the shape and the words of the code
	$(BIN)/python tools/stats.py
