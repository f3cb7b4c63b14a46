# make demo   makes .venv, installs, runs the main job on the embedded graph
# make serve  makes .venv, installs, trains the embedded graph in half a minute and opens its page in a browser
# make test   makes .venv, installs, runs all tests
# make test-orders   all tests in three random orders, two processes side by side
# make test-lowest   tests of every stage with the lower bounds of all dependencies, on Python 3.11
# make test-newest   the same with the newest versions, on Python 3.13 (make test-newest VERSION=3.12)
# make fuzz   10,000 generated bad inputs: only results or one-sentence refusals (make fuzz SEED=1)
# make crash  200 processes killed at random instants: the old or the new state, complete (make crash SEED=1)
# make mutants   plants 60 small faults into each of six packages and counts those that tests find (an hour)
# make lint   format and style (ruff), types (mypy --strict)
# make docs   the documentation as a site that needs no network, into site/
# make release-check   builds wheel and sdist, and runs the demo of the installed wheel outside the repository
# make bench  the measurements of results/, here and now
PYTHON ?= python3
BIN := .venv/bin

# The public benchmarks, where a copy is at hand: tests and benchmarks that need them are skipped otherwise.
ifneq ($(wildcard ../shared/data/SHA256SUMS),)
export NODEPIECE_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo serve test test-orders test-lowest test-newest fuzz crash mutants lint docs release-check bench clean

demo: .venv/installed
	$(BIN)/nodepiece demo

serve: .venv/installed-serve
	$(BIN)/nodepiece serve --writable --open

test: .venv/installed-dev
	$(BIN)/python -m pytest

test-orders: .venv/installed-dev
	for seed in 1 2 3; do $(BIN)/python -m pytest -p randomly --randomly-seed=$$seed -n 2 || exit 1; done

test-lowest test-newest: .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m scripts.try_versions $(@:test-%=%) \
		--python $(or $(VERSION),$(if $(filter test-lowest,$@),3.11,3.13))

SEED ?= 0
fuzz: .venv/installed-dev
	$(BIN)/python -m tests.fuzz --seed $(SEED) --inputs 10000

crash: .venv/installed-dev
	$(BIN)/python -m tests.crash --seed $(SEED) --kills 200

mutants: .venv/installed-dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	$(BIN)/python -m scripts.mutants --seed $(SEED)

lint: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html, or: python -m http.server -d site"

release-check: .venv/installed-dev
	$(BIN)/python -m scripts.release_check

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks.tokenization
	$(BIN)/python -m benchmarks.changes
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.compgcn

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nodepiece needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/installed-serve: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	@touch $@ .venv/installed

.venv/installed-dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ .venv/installed

clean:
	rm -rf .venv
