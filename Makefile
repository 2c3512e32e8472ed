# Each target needs only Python 3.11+ and make: the environment is created on first use.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
SHELL := bash
SCRIPTS := Scripts
else
SCRIPTS := bin
endif
BIN := $(VENV)/$(SCRIPTS)
WORKERS ?= 2
# The tests start many processes; without compiled files each of them would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-fast test-slow kernels check docs pictures site wheel fuzz chaos load mutants clean

demo: $(VENV)/ready
	$(BIN)/labelkin demo

# Every test but the slow ones. Each worker gets half of the files, so that files share what their tests train; one that is done
# takes tests from the other.
test: $(VENV)/ready
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"

# The quick tests of every room, for use while you work.
test-fast: $(VENV)/ready
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow and not long"

# Browser tests, many processes, long training runs.
test-slow: $(VENV)/ready
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m slow

# The Triton kernels, without a GPU: on small sizes in Triton's interpreter, and compiled for two kinds of GPU. Linux only: Triton
# has no other wheels.
kernels: $(VENV)/ready
	$(BIN)/pip install --quiet -c constraints.txt triton
	TRITON_INTERPRET=1 LABELKIN_REQUIRE=triton $(BIN)/pytest -n $(WORKERS) -k triton tests/functional

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_layers.py

# Writes docs/results.md, reproduction.md, choosing.md and leaderboard.md from results/*.json.
docs: $(VENV)/ready
	$(BIN)/python -m labelkin.papers

# The pictures of the README and of the site, from Fashion-MNIST and from the runs of the demo. Needs a Chromium.
pictures: demo
	$(BIN)/python docs/pictures.py runs/demo

# Builds the documentation site in build/site: pages, API reference and executed tutorials. A warning is an error.
site: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Builds a wheel in dist, installs it in an empty environment, and runs the commands and the lines of the README there.
wheel:
	rm -rf dist build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/$(SCRIPTS)/pip wheel --quiet --no-deps --wheel-dir dist .
	build/wheel/$(SCRIPTS)/pip install --quiet -c constraints.txt "$$(ls dist/labelkin-*.whl)[all]" pytest pytest-timeout
	build/wheel/$(SCRIPTS)/labelkin --version
	build/wheel/$(SCRIPTS)/labelkin --help >/dev/null
	build/wheel/$(SCRIPTS)/python -I tests/smoke_wheel.py
	build/wheel/$(SCRIPTS)/pytest -p no:cacheprovider tests/test_readme.py

# Damaged and malicious files, plans and run folders: 10,000 cases of each target. `make test` runs 25 of each.
fuzz: $(VENV)/ready
	FUZZ_CASES=10000 $(BIN)/pytest -n $(WORKERS) --timeout 0 tests/fuzz

# Kills commands at random and fills their disk; the same command then has to leave the same bytes. Linux; as root also the disk.
chaos: $(VENV)/ready
	$(BIN)/python tests/chaos.py --kills 100

# A store of 10,000 runs, trees of 100,000 classes, a page of 200 runs and an audit of 1,000,000 samples, each within its limit. For a
# quiet machine with 8 GB of disk.
load: $(VENV)/ready
	$(BIN)/python tests/load.py

# Breaks the code in every way listed in tests/mutants.py and checks that the tests fail.
mutants: $(VENV)/ready
	$(BIN)/python tests/mutants.py

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV)
