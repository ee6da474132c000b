# The two commands that matter: `make demo` and `make test`. Each sets up what it needs in .venv first.

# An interpreter of 3.11 to 3.13 that can make virtual environments; override with PYTHON=...
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
  && { echo $$p; break; }; done)
# For the published pyoco-server, whose worker can hang on 3.11: a later one if there is one.
PEER_PYTHON ?= $(shell for p in python3.12 python3.13 $(wildcard $(HOME)/.pyenv/versions/3.1[23].*/bin/python) $(PYTHON); do \
  $$p -c 'import ensurepip, venv' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
TESTS ?= tests
SEEDS ?= 2000

.PHONY: help setup demo test browser lint soak bench lock clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 with venv was found. Install one (Debian: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) ($$($(PYTHON) --version)), about a minute the first time ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup  ## everything on this machine, and a run to watch; Ctrl-C stops it
	@trap : INT; $(BIN)/pyoco-runtime demo || [ $$? = 130 ]  # Ctrl-C is how it ends

test: setup .venv-peers/.ready $(VENV)/.browser  ## every test, with a sample of the simulation's seeds
	@PYOCO_SIM_SEEDS=$(SEEDS) $(BIN)/python -m pytest -n 2 --dist loadgroup --ignore tests/browser $(TESTS)
	@# in a process of its own: while Playwright lives, no other event loop can start in its thread
	@if [ "$(TESTS)" = tests ]; then $(BIN)/python -m pytest tests/browser; fi

browser: $(VENV)/.browser  ## Chromium and a Japanese font for tests/browser, by apt-get if we are root

# Without a browser the tests of it say so themselves: they are skipped, and fail in CI.
$(VENV)/.browser:
	@mkdir -p $(VENV); if command -v chromium >/dev/null && fc-list :lang=ja 2>/dev/null | grep -q .; then touch $@; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium and fonts-noto-cjk for tests/browser ..."; \
	  { apt-get update && apt-get install -y --no-install-recommends chromium fontconfig fonts-noto-cjk; } >$(VENV)/browser.log 2>&1 \
	  && touch $@ || echo "They could not be installed; $(VENV)/browser.log says why." >&2; \
	else echo "tests/browser need Chromium and a Japanese font; install them (Debian: apt-get install chromium fonts-noto-cjk)" >&2; fi

lint: setup  ## ruff, mypy, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

soak: setup .venv-peers/.ready  ## what takes longer: every interpreter on this machine, many more seeds
	@SEEDS=$(SEEDS) sh tools/soak

bench: setup .venv-peers/.bench  ## the figures of benchmarks/, ours beside the peers'
	@$(BIN)/python benchmarks/core.py
	@$(BIN)/python benchmarks/runs.py
	@$(BIN)/python benchmarks/gateway.py

# The published pyoco-server, for tests/compat: in an environment of its own, as it is no dependency of ours.
.venv-peers/.ready: tests/compat/peer.lock
	@test -n "$(PEER_PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 with venv was found for pyoco-server; name one: make PEER_PYTHON=/path/to/python3.12" >&2; exit 1; }
	@echo "Setting up .venv-peers ($$($(PEER_PYTHON) --version)) with the published pyoco-server ..."
	@$(PEER_PYTHON) -m venv --clear .venv-peers
	@.venv-peers/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r tests/compat/peer.lock
	@touch $@

# The other peers, for benchmarks/ alone.
.venv-peers/.bench: benchmarks/peers.txt .venv-peers/.ready
	@.venv-peers/bin/python -m pip install -qq --disable-pip-version-check -r benchmarks/peers.txt
	@touch $@

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

lock: setup  ## resolve the ranges of pyproject.toml anew: all of it, what an image needs and is built with, and the peer
	@$(COMPILE) --group dev --group bench --extra testing pyproject.toml --output-file requirements.lock
	@$(COMPILE) --constraint requirements.lock pyproject.toml --output-file requirements.runtime.lock
	@echo hatchling | $(COMPILE) --constraint requirements.lock - --output-file requirements.build.lock
	@echo pyoco-server==0.5.1 | $(COMPILE) - --output-file tests/compat/peer.lock

clean:  ## remove the environments; the embedded server's store in .pyoco stays
	@rm -rf .venv .venv-3.* .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
