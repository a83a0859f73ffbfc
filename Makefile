# Everything here sets up what it needs below .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint format faults soak fuzz healthy accuracy accuracy-full deb rpm pyz containers clean

help:
	@echo "make demo    a simulated node with 8 GPUs, metrics and page on http://127.0.0.1:9937"
	@echo "make test    the whole test suite: no GPU, no root needed"
	@echo "make lint    format, rules, types and import contracts, as CI checks them"
	@echo "make format  write the format and the generated files"
	@echo "make deb rpm pyz    packages for Python 3.11 to 3.14 into dist/ (ARCH=\"amd64 arm64\")"
	@echo "make containers     try the package under a real systemd on Debian 12 and 13: root, minutes"
	@echo "make faults  what is known to go wrong, on the real daemon: held or not, and how long recovery took; minutes"
	@echo "make soak    six minutes of a day's churn and ten scrapes a second: memory, descriptors, series flat (SOAK_S=…)"
	@echo "make fuzz    bend what is read from a node, ten minutes long, and hold it to what is promised under trouble"
	@echo "make healthy    watch well simulated nodes for seven of their days: no alert may fire (MINUTES=…): hours"
	@echo "make accuracy       score where GPU time is said to have gone: minutes, all processors, goes on where it was"
	@echo "make accuracy-full  the same with all seeds, inputs and periods: about an hour and a half on eight processors"

demo: $(VENV)/.installed
	$(BIN)/gpufeed demo $(DEMO)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 4 --dist loadfile $(TEST)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/gpufeed metrics --format markdown > exporter/METRICS.md
	$(BIN)/gpufeed rules > rules/node.yml
	$(BIN)/python -m gpufeed.alerting.inhibition > rules/alertmanager-inhibit.yml

faults: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m fault --fault-table tests $(TEST)

soak: $(VENV)/.installed-test
	GPUFEED_SOAK_S=$(SOAK_S) $(BIN)/python -m pytest -s tests/soak $(TEST)

fuzz: $(VENV)/.installed-test
	cd tests && ../$(BIN)/python -m fuzz $(FUZZ)

JUDGE ?= --judge
healthy: $(VENV)/.installed-test
	GPUFEED_HEALTHY_MINUTES=$(or $(MINUTES),10080) $(BIN)/python -m pytest -n 2 tests/alerting/test_simulated_nodes.py -k silent

accuracy: $(VENV)/.installed
	$(BIN)/python -m bench.accuracy --plan ci $(JUDGE) $(ACCURACY)

accuracy-full: $(VENV)/.installed
	$(BIN)/python -m bench.accuracy --plan full $(JUDGE) $(ACCURACY)

SOAK_S ?= 360
ARCH ?= amd64
deb rpm pyz: $(VENV)/.installed-dev
	$(BIN)/python packaging/packages.py $@ --arch $(ARCH)

containers: $(VENV)/.installed-dev
	GPUFEED_CONTAINERS=1 $(BIN)/python -m pytest -rs -n 2 --dist loadfile tests/deploy $(TEST)

clean:
	rm -rf $(VENV) dist build .coverage .coverage.* htmlcov .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gpufeed needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing. On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tests/constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml tests/constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tests/constraints.txt -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml tests/constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c tests/constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed
