# Needs Python 3.11 or newer with venv, and nothing else. Name another interpreter with PYTHON=python3.12.
PYTHON ?= python3
VENV := .venv
RUN_VENV := .venv-demo
BENCH_VENV := .venv-bench
DOCS_VENV := .venv-docs
SITE := build/docs-site
UV ?= uv

.DEFAULT_GOAL := help
.PHONY: help demo quick test style types tests slow browser check evidence bench docs docs-site pictures golden lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(RUN_VENV)/ready  ## the main jobs on small leagues, and their pages, in build/demo
	@rm -rf build/demo
	@$(RUN_VENV)/bin/ratings demo --keep build/demo

quick: $(VENV)/ready  ## unit and contract tests in one kind of store and one process each, in half a minute
	$(VENV)/bin/pytest -q -n 2 --dist worksteal --quick tests/ledger tests/projections tests/cli/test_layers.py

test: style  ## style, types, and the tests that are not slow, of slow families one case, in less than six minutes
	@$(MAKE) --no-print-directory -j 2 types tests

# a third process, since many a test waits for a server or another process
tests: $(VENV)/ready
	$(VENV)/bin/pytest -n 3 --dist worksteal -m "not slow"

slow: $(VENV)/ready  ## the other tests and cases: servers, killed processes, full disks, random histories, and whole pages of the docs
	$(VENV)/bin/pytest -n 3 --dist worksteal -m slow

browser: $(VENV)/ready  ## the pages in a real Chromium: phone and desk, light and dark, keyboard alone, nobody shut out
	$(VENV)/bin/pytest -n 2 --dist worksteal tests/browser

check: style types

style: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready
	$(VENV)/bin/mypy

evidence: $(VENV)/ready  ## at length: killed processes, full disks, damaged files, hostile hands, concurrent writers, random histories
	$(VENV)/bin/pytest tests/cli tests/faults tests/hostile tests/intake tests/ledger tests/web $(ORACLES) --length long --timeout 3600

bench: $(BENCH_VENV)/ready  ## measure everything against other programs, for an hour; writes docs/performance.md
	$(BENCH_VENV)/bin/python -m benchmarks --write

docs: $(VENV)/ready  ## write the reference pages again from the code
	$(VENV)/bin/python scripts/make_docs.py

# all pages anew, since what changed may be the code that docstrings are read from
docs-site: $(DOCS_VENV)/ready  ## the pages as a site with search and an API reference, in build/docs-site; a broken link fails
	@rm -rf $(SITE)
	$(DOCS_VENV)/bin/python -m sphinx -q -E -W --keep-going -c docs -d build/docs-site-cache . $(SITE)
	$(DOCS_VENV)/bin/python scripts/check_site.py $(SITE)

# needs Chromium and fonts for all names: apt-get install chromium fonts-noto-core fonts-noto-cjk
pictures: $(VENV)/ready  ## take the pictures of the docs again; look at them before they are committed
	$(VENV)/bin/python scripts/make_pictures.py

golden: $(VENV)/ready  ## write the golden files again; read the difference before it is committed
	$(VENV)/bin/pytest -q tests/projections/test_rule_contract.py --write-golden

ORACLES := tests/projections/test_corrections_oracle.py tests/projections/test_month_lists.py \
	tests/projections/test_clock_machine.py tests/projections/test_time_machine.py tests/projections/test_known_past.py \
	tests/projections/test_causes.py tests/projections/test_paths.py tests/projections/test_record_scanner.py \
	tests/projections/test_clusters.py tests/projections/test_state_machine.py

lock:  ## resolve the locked dependencies again (needs uv)
	$(UV) pip compile pyproject.toml --extra spreadsheets --extra web --group build $(LOCKING) -o requirements/run.lock
	$(UV) pip compile pyproject.toml --extra cluster --extra fast --extra postgres --extra spreadsheets --extra web --group build $(LOCKING) -o requirements/server.lock
	$(UV) pip compile pyproject.toml --extra cluster --extra fast --extra frames --extra postgres --extra spreadsheets --extra web --group dev $(LOCKING) -o requirements/dev.lock
	$(UV) pip compile pyproject.toml --group docs --group build -c requirements/dev.lock $(LOCKING) -o requirements/docs.lock
	$(UV) pip compile pyproject.toml --extra cluster --extra fast --extra frames --extra postgres --extra spreadsheets --extra web --group bench $(LOCKING) -o requirements/bench.lock

LOCKING := --upgrade --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make lock'

clean:  ## remove everything that these targets made
	rm -rf $(VENV) $(RUN_VENV) $(BENCH_VENV) $(DOCS_VENV) benchmarks/data build dist .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: LOCK := requirements/dev.lock
$(RUN_VENV)/ready: LOCK := requirements/run.lock
$(BENCH_VENV)/ready: LOCK := requirements/bench.lock
$(DOCS_VENV)/ready: LOCK := requirements/docs.lock

# a folder is made anew when what it was made from is newer than its stamp
%/ready: requirements/dev.lock requirements/run.lock requirements/bench.lock requirements/docs.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv --clear $*
	$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
