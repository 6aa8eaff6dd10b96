# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`. Both do the set-up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# one thread each: steadier times and values that do not depend on the machine
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

PROPERTIES = $(shell grep -rl --include='*.py' hypothesis tests)

.PHONY: setup demo test fuzz soak lint types contracts bench clean help

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(STAMP) ## make .venv with all that development needs

# most of what is installed is never imported: byte code is made of what is, when it is
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP) ## render scenes as three models, score, compare and report them
	$(BIN)/gen-eval demo --out demo-out

test: $(STAMP) ## all tests that need no download
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

fuzz: $(STAMP) ## the tests of properties with examples that are drawn anew
	GEN_EVAL_HYPOTHESIS=fuzz $(BIN)/python -m pytest -n 2 $(PROPERTIES) $(PYTEST_ARGS)

soak: $(STAMP) ## the long forms: 20 kills in place of 3
	$(BIN)/python -m pytest -m soak $(PYTEST_ARGS)

lint: $(STAMP) ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## speed and memory beside a plain reference, in one run
	$(BIN)/python -m bench

clean: ## everything that can be made again
	rm -rf $(VENV) build dist demo-out bench/results .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
