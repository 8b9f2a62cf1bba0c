# Two commands matter: `make demo` and `make test`. Both need only Python 3.11 and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV := $(VENV)/.installed-dev

.PHONY: demo test test-evals lint conformance bench accuracy docs clean

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "agent-slo needs Python 3.11 or newer; '$(PYTHON)' was not found. Name yours: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "agent-slo needs Python 3.11 or newer; '$(PYTHON)' is older. Name another: make PYTHON=python3.12" >&2; exit 2; }
	@echo "Setting up $(VENV): a minute or two the first time."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@PYTHONWARNINGS='ignore:Editable installation' \
	  $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fast]'
	@touch $@

$(DEV): $(STAMP)
	@echo "Installing what tests and checks need."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/agent-slo demo

test: $(DEV)
	$(BIN)/pytest -n auto --dist worksteal

# The exports in the tools themselves, promptfoo among them: needs Node and 2 GB. `make test` runs the other tools.
PROMPTFOO := tests/incidents/promptfoo
$(PROMPTFOO)/node_modules/.package-lock.json: $(PROMPTFOO)/package-lock.json
	@command -v npm >/dev/null 2>&1 || { echo "make test-evals needs Node.js 20.20 or newer with npm" >&2; exit 2; }
	cd $(PROMPTFOO) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

test-evals: $(DEV) $(PROMPTFOO)/node_modules/.package-lock.json
	AGENT_SLO_PROMPTFOO=$(CURDIR)/$(PROMPTFOO)/node_modules/promptfoo/dist/src/entrypoint.js \
	  $(BIN)/pytest tests/incidents/test_targets.py

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

conformance: $(DEV)
	$(BIN)/python -m tests.collector.conformance

bench: $(DEV)
	$(BIN)/python -m benchmarks.ingest

docs: $(DEV)
	$(BIN)/python -m agent_slo.reference > docs/command-line.md

accuracy: $(DEV)
	$(BIN)/python -m tests.cases

clean:
	rm -rf $(VENV) build dist *.egg-info
