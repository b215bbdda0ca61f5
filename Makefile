# Everything runs in a virtual environment of its own. Nothing is needed but Python and make:
#   make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SCRIPTS := $(wildcard benchmarks/run scripts/check-wheel scripts/demo scripts/real-harness-check scripts/screenshots)

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check bench fmt format lint imports types wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.has-cli ## lose an agent in the middle of a real recording and go on
	$(BIN)/python scripts/demo

test: $(VENV)/.has-test ## run the tests
	$(BIN)/python -m pytest $(COVERAGE)

check: COVERAGE := --cov
check: test format lint imports types wheel ## everything that CI checks

bench: $(VENV)/.has-bench ## measure, each line beside its limit or rival
	$(BIN)/python benchmarks/run

fmt: $(VENV)/.has-dev ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

format: $(VENV)/.has-dev ## is it formatted?
	$(BIN)/ruff format --check .

lint: $(VENV)/.has-dev ## ruff
	$(BIN)/ruff check .

imports: $(VENV)/.has-dev ## import-linter: the table of rooms
	$(BIN)/lint-imports --no-logo

types: $(VENV)/.has-dev ## mypy and pyright
	$(BIN)/mypy --package incarnate
	$(BIN)/mypy tests $(SCRIPTS)
	$(BIN)/pyright --pythonpath $(BIN)/python

wheel: $(VENV)/.has-dev ## build, look inside, install in an empty environment, run the smoke tests there
	$(BIN)/python scripts/check-wheel

clean: ## remove all that was made here
	rm -rf $(VENV) build dist incarnate.egg-info .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

# One stamp for each extra: the demo need not wait for what only the checks want.
$(VENV)/.has-%: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[$*]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
