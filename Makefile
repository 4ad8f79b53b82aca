# make demo    set up, then compare seven systems offline; ends with the path of the report
# make test    set up, then run the tests
# make test-long  the slow tests: simulations, builds, every document, pages in Chromium
# make check   check style, format and types
# make ray-test  install Ray, then test on a real cluster
# make docs    build the docs site in build/site; any warning fails
# make coverage  run the tests and report line coverage
# make pictures  draw the picture of the README from a recorded run (docs/images/run.json)
# make bench   compare speeds with other tools, as ratios
# make vendors install real proxies, each in a separate environment
# make vendors-report  measure them again, and write the tables of README and docs/vendors.md
# make agents-report   measure policies and proxies on agents' histories, and write the table of docs/agents.md
# make claims  measure the published claims in claims/ again; fail if docs/claims.md differs
# make hooks   let git run the quick checks before each commit (pre-commit)
# make dist    build the packages and check them as a user gets them
# make system  install the Debian packages that the whole test suite needs (as root)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST_ARGS ?=
WORKERS ?= 4
VENDORS := kompact headroom litellm langchain
MEMORY_VENDORS := mem0 graphiti langmem

# Idle workers take tests from others. Neighbouring tests, which share servers and results, stay together.
PARALLEL = -n $(WORKERS) --dist worksteal

# Keep byte code. Otherwise every worker and every program that a test starts compiles it again and takes twice as long to start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long ray-test check format docs pictures coverage hooks dist bench vendors vendors-report agents-report claims memory-vendors system wheel-test clean

demo: $(VENV)/core.stamp
	@echo "(to type context-bench in this shell: . $(BIN)/activate)"
	$(BIN)/context-bench demo

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PARALLEL) -m 'not long and not browser' $(PYTEST_ARGS)

test-long: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PARALLEL) -m 'long or browser' $(PYTEST_ARGS)

# One cluster of three nodes is enough for a machine, so these run one after the other.
ray-test: $(VENV)/ray.stamp
	$(BIN)/python -m pytest -m ray $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: $(VENV)/dev.stamp
	$(BIN)/python tools/make_pictures.py

# The minimum is in pyproject.toml and may only rise: tools/coverage_floor.py raises it to the measured coverage.
coverage: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term:skip-covered -m 'not vendors and not memory_vendors and not ray' $(PYTEST_ARGS)

hooks: $(VENV)/dev.stamp
	$(BIN)/pre-commit install

dist: $(VENV)/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tools/check_dist.py dist

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

vendors: $(VENDORS:%=.vendors/%/installed.stamp)

vendors-report: vendors $(VENV)/dev.stamp
	$(BIN)/python tools/vendors_report.py --record

claims: $(VENV)/dev.stamp
	$(BIN)/python tools/claims_page.py

agents-report: vendors $(VENV)/dev.stamp
	$(BIN)/python tools/agents_report.py --record

# Vendors' memory systems, each in a separate environment. cognee, the largest, only on request: MEMORY_VENDORS=cognee
memory-vendors: $(MEMORY_VENDORS:%=.vendors/memory-%/installed.stamp)

.vendors/memory-%/installed.stamp: tools/memory-vendors/%.txt
	@echo "$*: installing into .vendors/memory-$*, which takes minutes"
	$(PYTHON) -m venv --clear .vendors/memory-$*
	.vendors/memory-$*/bin/python -m pip --disable-pip-version-check install --progress-bar off -r $<
	@touch $@

.vendors/%/installed.stamp: tools/vendors/%.txt
	@echo "$*: installing into .vendors/$*, which takes minutes"
	$(PYTHON) -m venv --clear .vendors/$*
	.vendors/$*/bin/python -m pip --disable-pip-version-check install --progress-bar off -r $<
	@touch $@

# Run the tests against the built wheel, with any interpreter: make wheel-test PYTHON=python3.13
wheel-test: VENV := .venv-wheel
wheel-test:
	PYTHON=$(PYTHON) VENV=$(VENV) sh tools/wheel-test.sh $(PARALLEL) $(PYTEST_ARGS)

system:
	sh tools/system-packages.sh

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "context-bench needs Python 3.10 or newer: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Another distribution, `context-bench`, has the same import name and may be installed already.
$(VENV)/core.stamp: $(VENV)/created.stamp pyproject.toml constraints.txt
	@$(PIP) uninstall --yes context-bench 2>/dev/null
	$(PIP) install -c constraints.txt -e '.[tap]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/created.stamp pyproject.toml constraints.txt requirements-dev.txt requirements-project.txt
	@$(PIP) uninstall --yes context-bench 2>/dev/null
	$(PIP) install -c constraints.txt -e '.[all]' -r requirements-dev.txt -r requirements-project.txt
	@touch $@ $(VENV)/core.stamp

$(VENV)/ray.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e '.[ray]'
	@touch $@

$(VENV)/bench.stamp: $(VENV)/dev.stamp benchmarks/requirements.txt
	$(PIP) install -c constraints.txt -r benchmarks/requirements.txt
	@touch $@

clean:
	rm -rf .venv .venv-wheel .vendors build dist .mypy_cache .pytest_cache .ruff_cache
