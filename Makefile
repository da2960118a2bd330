# make train   trains a Rocket League bot, 1v1 (PRESET=hopper chooses another recipe)
# make test    runs every test, the linter and the type checker, in about twenty minutes on two cores
# make test-fast   runs them without the slow tests, in two minutes: for after every change
# make test-cpus   runs the numeric tests as other CPUs would: every instruction set, one thread and two
# make bench   runs every benchmark (BENCH=name runs one)
# Needs Python 3.11 to 3.13 and make. Everything goes into .venv; a second call installs nothing.
PYTHON ?= python3
PRESET ?= rocket-1v1
BENCH ?= $(shell $(VENV)/bin/wavedash bench)
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
# A file stays with one process, which shares its fixtures. tests/conftest.py says how many processes there are, and orders the files:
# xdist's own order has the longest last.
PYTEST := $(VENV)/bin/python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# The version that is tested. On its own, because it is the large one: a changed dependency does not fetch it again.
TORCH := torch==2.13.0

.PHONY: train test test-fast test-cpus bench clean
.DELETE_ON_ERROR:

train: $(VENV)/.installed-rocket,mujoco
	$(VENV)/bin/wavedash train --stop-is-success $(PRESET)

test: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(PYTEST)

test-fast: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(PYTEST) -m "not slow" --durations 5

test-cpus: $(VENV)/.installed-dev
	$(VENV)/bin/python -m tests.on_every_cpu

bench: $(VENV)/.installed-bench
	set -e; for name in $(BENCH); do $(VENV)/bin/wavedash bench $$name; done

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp for each set of extras of pyproject.toml. rocket and mujoco are what the shipped presets need.
$(VENV)/.installed-%: pyproject.toml $(VENV)/.torch
	$(PIP) --editable ".[$*]"
	touch $@

$(VENV)/.torch:
	$(PYTHON) -c "import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else 'Wavedash needs Python 3.11 to 3.13: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(TORCH)
	touch $@
