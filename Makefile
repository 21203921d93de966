# Needs make, Python 3.11 or newer and its venv module; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# A file of pinned versions to install by (requirements-lock.txt); empty: the newest that fit.
CONSTRAINTS ?=
PYTEST_ARGS ?=

RUN := $(VENV)/.installed-run
UI := $(VENV)/.installed-ui
DEV := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
# What these tests see depends on seconds, so nothing runs beside them.
ALONE := tests/e2e/controller
# What failed is tried once more, alone: browsers and control planes of other people share two processors with it, and
# machines fail to start a program now and then. Both tries are in the log. Exit code 5 means that no test was asked for.
AGAIN = $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

.PHONY: help demo demo-ui test test-solvers lint format typecheck bench fit accuracy lock reproduction wheel clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## plan the first scenario and show the answer
	$(BIN)/fleetplan plan data/scenarios/01-two-variants.yaml

demo-ui: $(UI) ## open the what-if app on this machine
	$(BIN)/fleetplan ui

test: lint typecheck ## run every check: lint, types, import floors, tests
	$(BIN)/python -m pytest -n auto --dist loadgroup --ignore=$(ALONE) $(PYTEST_ARGS) || [ $$? -eq 5 ] || $(AGAIN)
	$(BIN)/python -m pytest $(ALONE) $(PYTEST_ARGS) || [ $$? -eq 5 ] || $(AGAIN)

test-solvers: $(DEV) ## check the solvers alone; with a newer Python: make test-solvers PYTHON=python3.12 VENV=.venv-newer
	FLEETPLAN_SEEDS=0:60 $(BIN)/python -m pytest -n auto --dist loadgroup tests/unit/test_backends.py tests/unit/test_whole_program.py tests/parity/test_solvers_agree.py $(PYTEST_ARGS)

lint: $(DEV) ## check style, format and the import floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(DEV) ## repair what style and format checks can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(DEV) ## check types
	$(BIN)/mypy

fit: $(DEV) ## fit the models of data/performance to the measured tables; needs FLEETPLAN_TEST_DATA
	$(BIN)/python scripts/fit_roofline.py
	$(BIN)/python scripts/fit_power.py

accuracy: $(DEV) ## measure how far figures of performance and power are off and write docs/accuracy.md; needs FLEETPLAN_TEST_DATA
	$(BIN)/python scripts/accuracy.py

reproduction: $(DEV) ## run the published experiments again in the twin and write docs/reproduction.md with its figures
	$(BIN)/fleetplan reproduce all --output docs

bench: $(DEV) ## measure families of fleets by size and solver, and write tables and plot into docs/benchmarks.md
	$(BIN)/python tests/benchmarks/run.py

lock: $(DEV) ## renew requirements-lock.txt from pyproject.toml, without installing
	$(PIP) install --quiet --dry-run --ignore-installed --report $(VENV)/lock-report.json ".[dev,all]"
	$(BIN)/python scripts/lock.py $(VENV)/lock-report.json requirements-lock.txt

wheel: $(DEV) ## build sdist and, from it, the wheel into dist/
	$(BIN)/python -m build --no-isolation

clean: ## remove what was built and cached; keeps .venv
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find models planner tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "fleetplan needs Python 3.11 or newer, and there is no '$(PYTHON)'. On Debian: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fleetplan needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv module is missing. On Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(RUN): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) --editable .
	@touch $@

$(UI): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) --editable ".[ui]"
	@touch $@ $(RUN)

$(DEV): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) --editable ".[dev]"
	@touch $@ $(RUN)
