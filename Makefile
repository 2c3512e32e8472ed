# Each target needs only Python 3.11+ and make: the environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check docs mutants clean

demo: $(VENV)/ready
	$(BIN)/labelkin demo

test: $(VENV)/ready
	$(BIN)/pytest

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_layers.py

# Writes docs/results.md, docs/reproduction.md and docs/choosing.md from results/*.json.
docs: $(VENV)/ready
	$(BIN)/python -m labelkin.papers

# Breaks the code in every way listed in tests/mutants.py and sees that the tests go red.
mutants: $(VENV)/ready
	$(BIN)/python tests/mutants.py

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV)
