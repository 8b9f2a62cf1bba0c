# Two commands matter: `make demo` and `make test`. Both need only Python 3.11 and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint conformance bench accuracy docs clean

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "agent-slo needs Python 3.11 or newer; '$(PYTHON)' was not found. Name yours: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "agent-slo needs Python 3.11 or newer; '$(PYTHON)' is older. Name another: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fast]' --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/agent-slo demo

test: $(STAMP)
	$(BIN)/pytest -n auto --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

conformance: $(STAMP)
	$(BIN)/python -m tests.collector.conformance

bench: $(STAMP)
	$(BIN)/python -m benchmarks.ingest

docs: $(STAMP)
	$(BIN)/python -m agent_slo.reference > docs/command-line.md

accuracy: $(STAMP)
	$(BIN)/python -m tests.cases

clean:
	rm -rf $(VENV) build dist *.egg-info
