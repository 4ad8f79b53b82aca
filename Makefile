# make demo    set up, then compare seven systems offline
# make test    set up, then run the tests
# make check   lint, format, types
# make bench   speed, side by side with others, as ratios
# make vendors the real proxies that can be measured, each in an environment of its own
# make system  what a fresh Debian machine lacks for the whole test suite (needs root)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST_ARGS ?=
WORKERS ?= 4
VENDORS := kompact headroom

.PHONY: demo test check format bench vendors system wheel-test clean

demo: $(VENV)/core.stamp
	$(BIN)/context-bench demo
	@echo "(in this shell: . $(BIN)/activate)"

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

vendors: $(VENDORS:%=.vendors/%/installed.stamp)

.vendors/%/installed.stamp: tools/vendors/%.txt
	$(PYTHON) -m venv --clear .vendors/$*
	.vendors/$*/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	@touch $@

# The suite against the built wheel, as a user gets it, with any interpreter: make wheel-test PYTHON=python3.13
wheel-test: VENV := .venv-wheel
wheel-test:
	PYTHON=$(PYTHON) VENV=$(VENV) sh tools/wheel-test.sh -n $(WORKERS) $(PYTEST_ARGS)

system:
	sh tools/system-packages.sh

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "context-bench needs Python 3.10 or newer: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The distribution `context-bench`, which an environment may have from before or from elsewhere, has the same import name.
$(VENV)/core.stamp: $(VENV)/created.stamp pyproject.toml constraints.txt
	@$(PIP) uninstall --yes context-bench 2>/dev/null
	$(PIP) install -c constraints.txt -e '.[tap]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/created.stamp pyproject.toml constraints.txt requirements-dev.txt
	@$(PIP) uninstall --yes context-bench 2>/dev/null
	$(PIP) install -c constraints.txt -e '.[all]' -r requirements-dev.txt
	@touch $@ $(VENV)/core.stamp

$(VENV)/bench.stamp: $(VENV)/dev.stamp benchmarks/requirements.txt
	$(PIP) install -c constraints.txt -r benchmarks/requirements.txt
	@touch $@

clean:
	rm -rf .venv .venv-wheel .vendors build dist .mypy_cache .pytest_cache .ruff_cache
